"""What is known of images that were built here: a small file for each in the cache."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from intercode.core.errors import UsageError
from intercode.core.paths import cache_root
from intercode.core.types import Image, Layer
from intercode.sandbox.images.archives.directory import walk_entries
from intercode.sandbox.images.build import steps
from intercode.sandbox.images.build.steps import BuildBase


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """An image that was built: the specification that it was asked for by, its base, the steps over
    that by their names in the cache, environment and directory, what its text said beside
    (``notes``), bytes of its own files, and when (seconds since the epoch)."""

    spec: str
    digest: str
    base: str
    base_digest: str
    steps: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    notes: tuple[str, ...]
    size: int
    built_at: float

    @property
    def path(self) -> Path:
        """Where this is written down."""
        return _record_path(self.spec, self.digest)


def record_image(
    spec: str, ground: BuildBase, env: Mapping[str, str], cwd: str, notes: Sequence[str] = ()
) -> Image:
    """The image of a finished ground, noted down when it is first asked for."""
    found = [layer.root.stat() for layer in ground.layers]
    as_it_is = repr([(status.st_ino, status.st_ctime_ns) for status in found])
    asked = steps.step_key("made", ground.cache_key, as_it_is, repr(sorted(env.items())), cwd)
    index = _records_directory() / f"{asked}.digest"
    digest = index.read_text() if index.is_file() else ""
    if not digest:
        held = [_content_digest(layer.root) for layer in ground.layers]
        told = repr((ground.image.digest, held, sorted(env.items()), cwd))
        digest = f"sha256:{hashlib.sha256(told.encode('utf-8', 'surrogateescape')).hexdigest()}"
        _write_text(index, digest)
    made = _record_path(spec, digest)
    if not made.is_file():
        record = BuiltImage(
            spec, digest, ground.image.name, ground.image.digest,
            tuple(layer.root.name for layer in ground.layers), dict(env), cwd, tuple(notes),
            sum(_disk_usage(layer.root) for layer in ground.layers), time.time(),
        )  # fmt: skip
        _write_text(made, json.dumps(asdict(record), indent=1) + "\n")
    layers = (*ground.image.layers, *ground.layers)
    return Image(spec, digest, ground.image.root, dict(env), cwd, layers)


def build_generation(spec: str, force: bool = False) -> str:
    """What tells apart the builds of a specification; another one from now on with ``again``."""
    path = _records_directory() / f"{steps.step_key('generation', spec)}.generation"
    if force:
        for record in built_images():
            if record.spec == spec:
                delete_built_image(record)
        _write_text(path, os.urandom(8).hex())
    return path.read_text() if path.is_file() else ""


def built_images() -> list[BuiltImage]:
    """Every image that was built here, the newest first."""
    found = []
    for path in _records_directory().glob("*.json"):
        with suppress(OSError, ValueError, TypeError, KeyError):  # another process removes it
            told = json.loads(path.read_text("utf-8"))
            lists = {key: tuple(told[key]) for key in ("steps", "notes")}
            found.append(BuiltImage(**{**told, **lists}))
    return sorted(found, key=lambda made: -made.built_at)


def load_built_image(digest: str, resolve: Callable[[str], Image]) -> Image:
    """The image that was built here with this digest, or the beginning of one (hexadecimal).

    Raises UsageError where there is none, or its base or a step of it is no longer in the cache.
    """
    for record in built_images():
        if not digest or not record.digest.removeprefix("sha256:").startswith(digest):
            continue
        base = resolve(record.base)
        trees = [steps.step_path(name) for name in record.steps]
        if base.digest != record.base_digest or not all(tree.is_dir() for tree in trees):
            raise UsageError(f"built:{digest} is no longer whole: build {record.spec} again")
        layers = tuple(Layer(tree, f"built:{tree.name}") for tree in trees)
        return Image(
            record.spec, record.digest, base.root, record.env, record.cwd,
            (*base.layers, *layers),
        )  # fmt: skip
    raise UsageError(f"built:{digest}: no such image was built here; see `intercode image list`")


def delete_built_image(made: BuiltImage) -> None:
    """Remove an image's record, and those of its steps that no other image has. Boxes that use them
    keep them (see ``steps.discard``)."""
    made.path.unlink(missing_ok=True)
    others = {name for other in built_images() for name in other.steps}
    for name in set(made.steps) - others:
        steps.discard_step(steps.steps_directory() / name)
    for index in _records_directory().glob("*.digest"):
        with suppress(FileNotFoundError):  # another process removes it
            if index.read_text() == made.digest:
                index.unlink()


def _records_directory() -> Path:
    path = cache_root() / "made"
    path.mkdir(exist_ok=True)
    return path


def _record_path(spec: str, digest: str) -> Path:
    return _records_directory() / f"{steps.step_key('image', spec, digest)}.json"


def _write_text(path: Path, text: str) -> None:
    half = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.half")
    half.write_text(text)
    half.replace(path)


def _content_digest(root: Path) -> str:
    """A SHA-256 over paths, modes, links and what files hold, marks of deletion included. Times
    are left out, as two builds of one image differ in them."""
    digest = hashlib.sha256()
    for path, status in walk_entries(root):
        mode, full = status.st_mode, f"{root}/{path}"
        held = os.readlink(full) if stat.S_ISLNK(mode) else ""
        if stat.S_ISREG(mode):
            with open(full, "rb") as f:
                held = hashlib.file_digest(f, "sha256").hexdigest()
        marks = b"user.overlay.opaque" if stat.S_ISDIR(mode) and _is_opaque(full) else b""
        digest.update(repr((path, mode, held, marks)).encode("utf-8", "surrogateescape") + b"\n")
    return digest.hexdigest()


def _is_opaque(path: str) -> bool:
    return "user.overlay.opaque" in os.listxattr(path)


def _disk_usage(root: Path) -> int:
    return sum(s.st_blocks * 512 for _, s in walk_entries(root) if not stat.S_ISDIR(s.st_mode))
