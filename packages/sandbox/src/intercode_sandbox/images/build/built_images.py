"""Records of images that were built on this machine, one small file each in the cache."""

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

from intercode_sandbox.errors import UsageError
from intercode_sandbox.images.archives.directory import walk_entries
from intercode_sandbox.images.archives.set_user_id import is_program
from intercode_sandbox.images.build import steps
from intercode_sandbox.images.build.steps import BuildBase
from intercode_sandbox.platforms.paths import cache_root
from intercode_sandbox.types import Image, Layer


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """The record of a built image.

    ``spec`` is the specification of the build, ``steps`` are the names of the steps over the base
    in the cache, ``notes`` are instructions that were recorded without effect, ``size`` is the size
    of the image's own files in bytes, ``built_at`` is in seconds since the epoch.
    """

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
    entrypoint: tuple[str, ...] = ()  # older records have none

    @property
    def path(self) -> Path:
        """The path of this record."""
        return _record_path(self.spec, self.digest)


def record_image(
    spec: str,
    base: BuildBase,
    env: Mapping[str, str],
    cwd: str,
    notes: Sequence[str] = (),
    entrypoint: tuple[str, ...] | None = None,
) -> Image:
    """Return the image of a finished build, and write its record if there is none.

    Its digest covers the base's digest, the content of the steps, ``env`` and ``cwd``, and
    ``entrypoint`` if it differs from that of the base. None stands for that of the base.
    """
    if entrypoint is None:
        entrypoint = base.image.entrypoint
    own = () if entrypoint == base.image.entrypoint else (entrypoint,)
    statuses = [layer.root.stat() for layer in base.layers]
    inode_key = repr([(status.st_ino, status.st_ctime_ns) for status in statuses])
    index_key = steps.step_key(
        "made", base.cache_key, inode_key, repr(sorted(env.items())), cwd, *map(repr, own)
    )
    index = _records_directory() / f"{index_key}.digest"
    digest = index.read_text() if index.is_file() else ""
    if not digest:
        content_digests = [_content_digest(layer.root) for layer in base.layers]
        identity = repr((base.image.digest, content_digests, sorted(env.items()), cwd, *own))
        digest = f"sha256:{hashlib.sha256(identity.encode('utf-8', 'surrogateescape')).hexdigest()}"
        _write_text(index, digest)
    record_path = _record_path(spec, digest)
    if not record_path.is_file():
        record = BuiltImage(
            spec,
            digest,
            base.image.name,
            base.image.digest,
            tuple(layer.root.name for layer in base.layers),
            dict(env),
            cwd,
            tuple(notes),
            sum(_disk_usage(layer.root) for layer in base.layers),
            time.time(),
            entrypoint,
        )
        _write_text(record_path, json.dumps(asdict(record), indent=1) + "\n")
    layers = (*base.image.layers, *base.layers)
    return Image(spec, digest, base.image.root, dict(env), cwd, layers, entrypoint=entrypoint)


def build_generation(spec: str, force: bool = False) -> str:
    """Return the identifier of the current build of a specification.

    With ``force``, start a new one, and delete the records of earlier builds.
    """
    path = _records_directory() / f"{steps.step_key('generation', spec)}.generation"
    if force:
        for record in built_images():
            if record.spec == spec:
                delete_built_image(record)
        _write_text(path, os.urandom(8).hex())
    return path.read_text() if path.is_file() else ""


def built_images() -> list[BuiltImage]:
    """Return the records of all built images, newest first."""
    found = []
    for path in _records_directory().glob("*.json"):
        with suppress(OSError, ValueError, TypeError, KeyError):  # another process may remove it
            table = json.loads(path.read_text("utf-8"))
            if "when" in table:  # the former name of the key
                table["built_at"] = table.pop("when")
            lists = {key: tuple(table[key]) for key in ("steps", "notes")}
            lists["entrypoint"] = tuple(table.get("entrypoint", ()))
            found.append(BuiltImage(**{**table, **lists}))
    return sorted(found, key=lambda made: -made.built_at)


def load_built_image(digest: str, resolve: Callable[[str], Image]) -> Image:
    """Return the built image whose digest begins with ``digest`` (hexadecimal).

    Raises UsageError if there is none, or if its base or one of its steps is no longer in the
    cache.
    """
    record = find_built_image(digest)
    base = resolve(record.base)
    trees = [steps.step_path(name) for name in record.steps]
    if base.digest != record.base_digest or not all(tree.is_dir() for tree in trees):
        raise UsageError(f"built:{digest} is incomplete: build {record.spec} again")
    layers = tuple(Layer(tree, f"built:{tree.name}") for tree in trees)
    return Image(
        record.spec,
        record.digest,
        base.root,
        record.env,
        record.cwd,
        (*base.layers, *layers),
        entrypoint=record.entrypoint,
    )


def find_built_image(digest: str) -> BuiltImage:
    """Return the record of ``built:digest``. Raises UsageError if there is none."""
    for record in built_images():
        if digest and record.digest.removeprefix("sha256:").startswith(digest):
            return record
    raise UsageError(
        f"built:{digest}: no such image was built here; see `intercode-sandbox image list`"
    )


def delete_built_image(image: BuiltImage) -> None:
    """Delete the record of an image, and the steps that only this image has. Running sandboxes keep
    the steps that they use (see ``steps.discard_step``)."""
    image.path.unlink(missing_ok=True)
    other_steps = {name for other in built_images() for name in other.steps}
    for name in set(image.steps) - other_steps:
        steps.discard_step(steps.steps_directory() / name)
    for index in _records_directory().glob("*.digest"):
        with suppress(FileNotFoundError):  # another process may remove it
            if index.read_text() == image.digest:
                index.unlink()


def _records_directory() -> Path:
    path = cache_root() / "made"
    path.mkdir(exist_ok=True)
    return path


def _record_path(spec: str, digest: str) -> Path:
    return _records_directory() / f"{steps.step_key('image', spec, digest)}.json"


def _write_text(path: Path, text: str) -> None:
    partial = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.half")
    partial.write_text(text)
    partial.replace(path)


def _content_digest(root: Path) -> str:
    """Return a SHA-256 over paths, modes with set-user-ID bits, link targets, contents and overlay
    whiteouts.

    Times are not part of it, because they differ between builds of the same image.
    """
    digest = hashlib.sha256()
    for path, status in walk_entries(root):
        mode, full = status.st_mode, f"{root}/{path}"
        content = os.readlink(full) if stat.S_ISLNK(mode) else ""
        if stat.S_ISREG(mode):
            with open(full, "rb") as f:
                content = hashlib.file_digest(f, "sha256").hexdigest()
            if is_program(full, status):
                mode |= stat.S_ISUID
        opaque_mark = b"user.overlay.opaque" if stat.S_ISDIR(mode) and _is_opaque(full) else b""
        digest.update(
            repr((path, mode, content, opaque_mark)).encode("utf-8", "surrogateescape") + b"\n"
        )
    return digest.hexdigest()


def _is_opaque(path: str) -> bool:
    return "user.overlay.opaque" in os.listxattr(path)


def _disk_usage(root: Path) -> int:
    return sum(s.st_blocks * 512 for _, s in walk_entries(root) if not stat.S_ISDIR(s.st_mode))
