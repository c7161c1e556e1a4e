"""COPY and ADD: files of the context, of another stage, or of a here-document, as a step."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from intercode.core.errors import DataError
from intercode.core.paths import cache_root
from intercode.core.types import Layer, LayerSpec
from intercode.sandbox import images
from intercode.sandbox.images.build import steps
from intercode.sandbox.images.build.layer_stack import LayerStack
from intercode.sandbox.images.build.steps import BuildBase, StepWriter
from intercode.sandbox.images.cache.trees import file_digest
from intercode.sandbox.images.dockerfile.dockerignore import has_wildcard, match_names


@dataclass(frozen=True, slots=True)
class CopyEntry:
    """A file, directory or link to be put ``at`` a path of the image. ``source`` is where it lies
    on this machine, or its content."""

    at: str
    source: str | bytes
    mode: int
    when: int = 0

    @property
    def fingerprint(self) -> tuple[str, int, str]:
        """What two equal entries have in common."""
        if isinstance(self.source, bytes):
            return self.at, self.mode, hashlib.sha256(self.source).hexdigest()
        held = ""
        if stat.S_ISLNK(self.mode):
            held = os.readlink(self.source)
        elif stat.S_ISREG(self.mode):
            held = file_digest(cache_root(), Path(self.source))
        return self.at, self.mode, held


def empty_directory(path: str) -> CopyEntry:
    """An empty directory."""
    return CopyEntry(path, b"", stat.S_IFDIR | 0o755, time.time_ns())


@dataclass(frozen=True, slots=True)
class CopySource:
    """Where COPY takes files from. ``stack``: a stage, or the context as a stack of one;
    ``ignored``: what of it does not count. ``asked`` and ``hint`` are for messages: what names the
    files, and what to know of it."""

    stack: LayerStack
    name: str
    is_ignored: Callable[[str], bool] = lambda _: False
    instruction: str = "COPY"
    hint: str = "sources are relative to it, and .dockerignore may leave files out"

    def matching_paths(self, pattern: str) -> list[str]:
        """The paths that a source of COPY names. Raises DataError where there is none."""
        names = [""]
        for part in (p for p in pattern.split("/") if p not in ("", ".")):
            if part == "..":
                raise DataError(f"{self.instruction} {pattern}: .. leads out of {self.name}")
            names = [name for above in names for name in self._match_part(above, part)]
        names = [name for name in names if not (name and self.is_ignored(name))]
        if not names:
            raise DataError(
                f"{self.instruction} {pattern}: there is no such file in {self.name}; {self.hint}"
            )
        return names

    def _match_part(self, above: str, part: str) -> list[str]:
        real = self.stack.resolve(above)
        if has_wildcard(part):
            there = self.stack.find(real)
            if there is None or not stat.S_ISDIR(there[1].st_mode):
                return []
            names = {n.rpartition("/")[2] for n, _, _ in self.stack.walk(real, depth=1) if n}
            return [f"{real}/{n}".lstrip("/") for n in match_names(part, names)]
        name = f"{real}/{part}".lstrip("/")
        return [name] if self.stack.find(name) else []


def collect_entries(
    source: CopySource,
    patterns: Sequence[str],
    to: str,
    ground: BuildBase,
    *,
    chmod: int | None = None,
    unpack_archives: bool = False,
) -> list[CopyEntry]:
    """What COPY puts where: ``to`` is an absolute path; a directory where it ends in ``/`` or is
    one. ``unpacked``: of an archive, what it holds, as ADD does."""
    names = [name for pattern in patterns for name in source.matching_paths(pattern)]
    if len(names) > 1 and not to.endswith("/"):
        raise DataError(
            f"{source.instruction} of {len(names)} files to {to}: write {to}/, a directory"
        )
    there = ground.stack.find(ground.stack.resolve(to))
    folder = to.endswith("/") or (there is not None and stat.S_ISDIR(there[1].st_mode))
    found: list[CopyEntry] = []
    for name in names:
        real = source.stack.resolve(name)
        held = source.stack.find(real)
        if held is None:
            raise DataError(
                f"{source.instruction} {name}: the link leads to nothing in {source.name}"
            )
        if stat.S_ISDIR(held[1].st_mode):
            found += _tree_entries(source, real, to.rstrip("/"), chmod)
        elif unpack_archives and stat.S_ISREG(held[1].st_mode) and is_archive(held[0]):
            tree = images.resolve_layer(LayerSpec("tar", Path(held[0]))).root
            found += _tree_entries(CopySource(LayerStack([tree]), name), "", to.rstrip("/"), chmod)
        else:
            at = f"{to.rstrip('/')}/{name.rpartition('/')[2]}" if folder else to
            found.append(_copy_entry(at, *held, chmod))
    return found


def _tree_entries(source: CopySource, top: str, to: str, chmod: int | None) -> Iterator[CopyEntry]:
    for name, path, status in source.stack.walk(top):
        if not (name and source.is_ignored(name)):
            yield _copy_entry(
                f"{to}/{name[len(top) :].lstrip('/')}".rstrip("/"), path, status, chmod
            )


def _copy_entry(at: str, path: str, status: os.stat_result, chmod: int | None) -> CopyEntry:
    mode = status.st_mode & ~(stat.S_ISUID | stat.S_ISGID)
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
        raise DataError(f"{path} is no file, directory or link: it cannot be copied")
    if chmod is not None and not stat.S_ISLNK(mode):
        mode = stat.S_IFMT(mode) | chmod
    return CopyEntry(at, path, mode, status.st_mtime_ns)


def copy_layer(ground: BuildBase, entries: Sequence[CopyEntry]) -> Layer:
    """A step that holds the entries. Raises DataError where a file would take a directory's place,
    or what has to be a directory is none."""
    told = repr([entry.fingerprint for entry in entries])

    def fill(home: Path) -> None:
        writer = StepWriter(ground, home / "upper")
        for entry in entries:
            _write_entry(entry, writer)
        writer.finish()

    return steps.cached_step(steps.step_key("copy", ground.cache_key, told), fill)


def _write_entry(entry: CopyEntry, writer: StepWriter) -> None:
    if stat.S_ISDIR(entry.mode):
        name = writer.stack.resolve(entry.at)
        writer.directory(name, entry.mode, entry.when)
        return
    above, _, last = entry.at.strip("/").rpartition("/")
    folder = writer.stack.resolve(above)
    name = f"{folder}/{last}".lstrip("/")
    there = writer.stack.find(name)
    if there and stat.S_ISLNK(there[1].st_mode) and not stat.S_ISLNK(entry.mode):
        name = writer.stack.resolve(name)  # a file is written through a link, as in a box
        there = writer.stack.find(name)
    if there and stat.S_ISDIR(there[1].st_mode):
        raise DataError(f"/{name} is a directory in the image: {entry.at} cannot take its place")
    writer.ensure_parents(name, entry.when)
    if isinstance(entry.source, bytes):
        writer.writer.file(
            name, io.BytesIO(entry.source), len(entry.source), entry.mode, entry.when
        )
    elif stat.S_ISLNK(entry.mode):
        writer.writer.symlink(name, os.readlink(entry.source), entry.when)
    else:
        with open(entry.source, "rb", buffering=0) as f:
            writer.writer.file(name, f, os.fstat(f.fileno()).st_size, entry.mode, entry.when)


def is_archive(path: str) -> bool:
    """Whether ADD unpacks a file: a tar, compressed or not."""
    try:
        return tarfile.is_tarfile(path)
    except OSError:
        return False
