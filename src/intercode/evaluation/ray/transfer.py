"""Trees and files on their way to a node: an archive in pieces, unpacked there once by content."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError, SandboxError
from intercode.core.paths import cache_root, sandbox_uid
from intercode.evaluation.ray.environment_spec import Artifact
from intercode.sandbox.container.image_import import write_layer
from intercode.sandbox.images.archives import layered_writer, tar
from intercode.sandbox.images.archives.tree_writer import TreeWriter
from intercode.sandbox.images.cache.trees import cached_tree
from intercode.sandbox.supervisor.runtime.overlay import OPAQUE_ATTRIBUTE

CHUNK_SIZE = 4 << 20
"""Bytes that travel at once: what a node's object store has to hold of an image."""


def send_artifact(parcel: Artifact, give: Callable[[bytes], None]) -> tuple[str, int, int]:
    """Give a parcel's content to ``give`` in pieces, as an archive. Returns the archive's SHA-256,
    and of a directory the mode and the time of change in nanoseconds.

    Raises SandboxError for what cannot be read.
    """
    out = _ChunkWriter(give)
    try:
        info = os.stat(parcel.path)
        if parcel.kind == "file":
            _write_file(out, parcel.path)
        else:
            write_layer(out, parcel.path)
    except OSError as e:
        raise SandboxError(f"{parcel.path} cannot be sent to a node: {e}") from e
    out.flush_all()
    return out.digest.hexdigest(), stat.S_IMODE(info.st_mode), info.st_mtime_ns


def _write_file(out: Any, path: Path) -> None:
    with (
        tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as archive,
        path.open("rb") as file,
    ):
        info, entry = os.fstat(file.fileno()), tarfile.TarInfo()
        entry.name = f"{path.absolute().parent.name}/{path.name}"
        entry.size, entry.mode, entry.mtime = info.st_size, stat.S_IMODE(info.st_mode), 0
        archive.addfile(entry, file)


class _ChunkWriter(io.RawIOBase):
    """A file that hands on what is written to it in pieces of one size, the last one smaller."""

    def __init__(self, give: Callable[[bytes], None]) -> None:
        self.digest = hashlib.sha256()
        self._send, self._buffer = give, bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.digest.update(data)
        self._buffer += data
        while len(self._buffer) >= CHUNK_SIZE:
            self._send(bytes(self._buffer[:CHUNK_SIZE]))
            del self._buffer[:CHUNK_SIZE]
        return len(data)

    def flush_all(self) -> None:
        """Hand on what is left."""
        if self._buffer:
            self._send(bytes(self._buffer))
            self._buffer.clear()


class ArtifactReceiver:
    """The node's side: which parcels it has, and those that are arriving."""

    def __init__(self, parcels: Sequence[Artifact]) -> None:
        self._artifacts = parcels
        self._incoming: dict[int, Any] = {}

    def missing_artifacts(self) -> list[int]:
        """The positions of the parcels that this machine's cache does not have."""
        return [
            n for n, parcel in enumerate(self._artifacts) if not _cache_directory(parcel).is_dir()
        ]

    def receive(self, number: int, piece: bytes) -> None:
        """The next piece of a parcel."""
        if number not in self._incoming:
            cache = cache_root()
            self._incoming[number] = tempfile.TemporaryFile(dir=cache)  # noqa: SIM115
        self._incoming[number].write(piece)

    def unpack(self, number: int, digest: str, mode: int, mtime_ns: int) -> None:
        """All pieces are there: unpack them. Raises DataError where they are not what was sent."""
        parcel = self._artifacts[number]
        with self._incoming.pop(number) as file:
            file.seek(0)
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise DataError(f"{parcel.path} did not arrive whole: begin again")

            def fill(root: Path) -> None:
                kind = UpperLayerWriter if parcel.kind == "upper" else TreeWriter
                writer = kind(root, sandbox_uid(), str(parcel.path))
                if parcel.kind != "file":
                    writer.directory("", mode, mtime_ns)
                file.seek(0)
                tar.write_entries(file, writer)
                writer.finish()

            cached_tree(cache_root(), _cache_directory(parcel).name, fill)

    def local_paths(self) -> dict[Path, Path]:
        """Where this machine has each parcel, by where the driver's has it. All have to be there;
        while this process lives, nothing removes them."""
        return {parcel.path: _local_path(parcel) for parcel in self._artifacts}


class UpperLayerWriter(TreeWriter):
    """Writes an overlay's upper directory: what the archive marks as deleted becomes what the
    kernel takes for that."""

    def handle_whiteout(self, name: str) -> bool:
        """Deal with a mark of deletion."""
        above, _, last = name.rstrip("/").rpartition("/")
        if last == layered_writer.OPAQUE_WHITEOUT:
            os.setxattr(self._full_path(self.normalize(above)), OPAQUE_ATTRIBUTE, b"y")
            return True
        if last.startswith(layered_writer.WHITEOUT_PREFIX):
            hidden = last.removeprefix(layered_writer.WHITEOUT_PREFIX)
            path = self._prepare_path(f"{above}/{hidden}" if above else hidden)
            os.mknod(path, stat.S_IFCHR, 0)
            return True
        return False


def _cache_directory(parcel: Artifact) -> Path:
    return cache_root() / "layers" / f"{parcel.key}-{sandbox_uid()}"


def _local_path(parcel: Artifact) -> Path:
    home = cached_tree(cache_root(), _cache_directory(parcel).name, _raise_removed)
    if parcel.kind == "file":
        return home / parcel.path.absolute().parent.name / parcel.path.name
    return home


def _raise_removed(root: Path) -> None:
    raise SandboxError(f"{root} was removed while an environment was made that needs it")
