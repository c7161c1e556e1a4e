"""COPY and ADD: copies files of the context, another stage or a here-document as a step."""

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

from intercode_sandbox import images
from intercode_sandbox.errors import DataError
from intercode_sandbox.images.archives import set_user_id
from intercode_sandbox.images.build import steps
from intercode_sandbox.images.build.layer_stack import LayerStack
from intercode_sandbox.images.build.steps import BuildBase, StepWriter
from intercode_sandbox.images.dockerfile.dockerignore import has_wildcard, match_names
from intercode_sandbox.platforms.digests import cached_file_digest
from intercode_sandbox.platforms.paths import cache_root
from intercode_sandbox.types import Layer, LayerSpec


@dataclass(frozen=True, slots=True)
class CopyEntry:
    """A file, directory or link to write to the path ``target`` of the image.

    ``source`` is its path on this machine, or its content. ``mtime_ns`` is in nanoseconds.
    """

    target: str
    source: str | bytes
    mode: int
    mtime_ns: int = 0

    @property
    def fingerprint(self) -> tuple[str, int, str]:
        """The target, mode and a digest of the content, as a cache key."""
        if isinstance(self.source, bytes):
            return self.target, self.mode, hashlib.sha256(self.source).hexdigest()
        content = ""
        if stat.S_ISLNK(self.mode):
            content = os.readlink(self.source)
        elif stat.S_ISREG(self.mode):
            content = cached_file_digest(cache_root(), Path(self.source))
        return self.target, self.mode, content


def empty_directory(path: str) -> CopyEntry:
    """Return an entry for an empty directory."""
    return CopyEntry(path, b"", stat.S_IFDIR | 0o755, time.time_ns())


@dataclass(frozen=True, slots=True)
class CopySource:
    """The source of COPY: the files of a stage, or of the context.

    ``is_ignored`` excludes paths. ``keeps_programs``: whether set-user-ID programs remain what
    they are.
    """

    stack: LayerStack
    name: str
    is_ignored: Callable[[str], bool] = lambda _: False
    keeps_programs: bool = False

    def matching_paths(self, pattern: str) -> list[str]:
        """Return the paths that match a source pattern. Raises DataError if there are none."""
        names = [""]
        for part in (p for p in pattern.split("/") if p not in ("", ".")):
            if part == "..":
                raise DataError(f"COPY {pattern}: .. leads out of {self.name}")
            names = [name for above in names for name in self._match_part(above, part)]
        names = [name for name in names if not (name and self.is_ignored(name))]
        if not names:
            raise DataError(
                f"COPY {pattern}: there is no such file in {self.name}; sources are relative to "
                "it, and .dockerignore may leave files out"
            )
        return names

    def _match_part(self, above: str, part: str) -> list[str]:
        resolved = self.stack.resolve(above)
        if has_wildcard(part):
            entry = self.stack.find(resolved)
            if entry is None or not stat.S_ISDIR(entry[1].st_mode):
                return []
            names = {n.rpartition("/")[2] for n, _, _ in self.stack.walk(resolved, depth=1) if n}
            return [f"{resolved}/{n}".lstrip("/") for n in match_names(part, names)]
        name = f"{resolved}/{part}".lstrip("/")
        return [name] if self.stack.find(name) else []


def collect_entries(
    source: CopySource,
    patterns: Sequence[str],
    target: str,
    base: BuildBase,
    *,
    chmod: int | None = None,
    unpack_archives: bool = False,
) -> list[CopyEntry]:
    """Return the entries of a COPY to the absolute path ``target``.

    ``target`` is a directory if it ends in ``/`` or is one in the image. ``unpack_archives``:
    replace archives by their content, as ADD does.
    """
    names = [name for pattern in patterns for name in source.matching_paths(pattern)]
    if len(names) > 1 and not target.endswith("/"):
        raise DataError(f"COPY of {len(names)} files to {target}: write {target}/, for a directory")
    target_entry = base.stack.find(base.stack.resolve(target))
    folder = target.endswith("/") or (
        target_entry is not None and stat.S_ISDIR(target_entry[1].st_mode)
    )
    entries: list[CopyEntry] = []
    for name in names:
        resolved = source.stack.resolve(name)
        source_entry = source.stack.find(resolved)
        if source_entry is None:
            raise DataError(f"COPY {name}: the target of the link is missing in {source.name}")
        if stat.S_ISDIR(source_entry[1].st_mode):
            entries += _tree_entries(source, resolved, target.rstrip("/"), chmod)
        elif (
            unpack_archives
            and stat.S_ISREG(source_entry[1].st_mode)
            and is_archive(source_entry[0])
        ):
            tree = images.resolve_layer(LayerSpec("tar", Path(source_entry[0]))).root
            entries += _tree_entries(
                CopySource(LayerStack([tree]), name, keeps_programs=True),
                "",
                target.rstrip("/"),
                chmod,
            )
        else:
            at = f"{target.rstrip('/')}/{name.rpartition('/')[2]}" if folder else target
            entries.append(_copy_entry(source, at, *source_entry, chmod))
    return entries


def _tree_entries(source: CopySource, top: str, to: str, chmod: int | None) -> Iterator[CopyEntry]:
    for name, path, status in source.stack.walk(top):
        if not (name and source.is_ignored(name)):
            at = f"{to}/{name[len(top) :].lstrip('/')}".rstrip("/")
            yield _copy_entry(source, at, path, status, chmod)


def _copy_entry(
    source: CopySource, at: str, path: str, status: os.stat_result, chmod: int | None
) -> CopyEntry:
    mode = status.st_mode & ~(stat.S_ISUID | stat.S_ISGID)
    if source.keeps_programs and set_user_id.is_program(path, status):
        mode |= stat.S_ISUID
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
        raise DataError(f"{path} is not a file, directory or link: it cannot be copied")
    if chmod is not None and not stat.S_ISLNK(mode):
        mode = stat.S_IFMT(mode) | chmod
    return CopyEntry(at, path, mode, status.st_mtime_ns)


def copy_layer(base: BuildBase, entries: Sequence[CopyEntry]) -> Layer:
    """Return the step that writes the entries.

    Raises DataError if a file would replace a directory, or a parent is not a directory.
    """
    identity = repr([entry.fingerprint for entry in entries])

    def fill(home: Path) -> None:
        writer = StepWriter(base, home / "upper")
        for entry in entries:
            _write_entry(entry, writer)
        writer.finish()

    return steps.cached_step(steps.step_key("copy", base.cache_key, identity), fill)


def _write_entry(entry: CopyEntry, writer: StepWriter) -> None:
    if stat.S_ISDIR(entry.mode):
        name = writer.stack.resolve(entry.target)
        writer.directory(name, entry.mode, entry.mtime_ns)
        return
    above, _, last = entry.target.strip("/").rpartition("/")
    folder = writer.stack.resolve(above)
    name = f"{folder}/{last}".lstrip("/")
    existing = writer.stack.find(name)
    if existing and stat.S_ISLNK(existing[1].st_mode) and not stat.S_ISLNK(entry.mode):
        name = writer.stack.resolve(name)  # writing a file follows links, as in a sandbox
        existing = writer.stack.find(name)
    if existing and stat.S_ISDIR(existing[1].st_mode):
        raise DataError(f"/{name} is a directory in the image: {entry.target} cannot replace it")
    writer.ensure_parents(name, entry.mtime_ns)
    if isinstance(entry.source, bytes):
        writer.writer.file(
            name, io.BytesIO(entry.source), len(entry.source), entry.mode, entry.mtime_ns
        )
    elif stat.S_ISLNK(entry.mode):
        writer.writer.symlink(name, os.readlink(entry.source), entry.mtime_ns)
    else:
        with open(entry.source, "rb", buffering=0) as f:
            writer.writer.file(name, f, os.fstat(f.fileno()).st_size, entry.mode, entry.mtime_ns)


def is_archive(path: str) -> bool:
    """Return whether ADD unpacks a file: a tar archive, compressed or not."""
    try:
        return tarfile.is_tarfile(path)
    except OSError:
        return False
