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
from intercode.evaluation.ray.environment_spec import Parcel
from intercode.sandbox.container.image_import import write_layer
from intercode.sandbox.images.archives import layered_writer, tar
from intercode.sandbox.images.archives.tree_writer import TreeWriter
from intercode.sandbox.images.cache.trees import unpacked
from intercode.sandbox.supervisor.runtime.overlay import OPAQUE

PIECE = 4 << 20
"""Bytes that travel at once: what a node's object store has to hold of an image."""


def send(parcel: Parcel, give: Callable[[bytes], None]) -> tuple[str, int, int]:
    """Give a parcel's content to ``give`` in pieces, as an archive. Returns the archive's SHA-256,
    and of a directory the mode and the time of change in nanoseconds.

    Raises SandboxError for what cannot be read.
    """
    out = _Pieces(give)
    try:
        info = os.stat(parcel.path)
        if parcel.kind == "file":
            _write_file(out, parcel.path)
        else:
            write_layer(out, parcel.path)
    except OSError as e:
        raise SandboxError(f"{parcel.path} cannot be sent to a node: {e}") from e
    out.flush_all()
    return out.sum.hexdigest(), stat.S_IMODE(info.st_mode), info.st_mtime_ns


def _write_file(out: Any, path: Path) -> None:
    with (
        tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as archive,
        path.open("rb") as file,
    ):
        info, entry = os.fstat(file.fileno()), tarfile.TarInfo()
        entry.name = f"{path.absolute().parent.name}/{path.name}"
        entry.size, entry.mode, entry.mtime = info.st_size, stat.S_IMODE(info.st_mode), 0
        archive.addfile(entry, file)


class _Pieces(io.RawIOBase):
    """A file that hands on what is written to it in pieces of one size, the last one smaller."""

    def __init__(self, give: Callable[[bytes], None]) -> None:
        self.sum = hashlib.sha256()
        self._give, self._kept = give, bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.sum.update(data)
        self._kept += data
        while len(self._kept) >= PIECE:
            self._give(bytes(self._kept[:PIECE]))
            del self._kept[:PIECE]
        return len(data)

    def flush_all(self) -> None:
        """Hand on what is left."""
        if self._kept:
            self._give(bytes(self._kept))
            self._kept.clear()


class Arrivals:
    """The node's side: which parcels it has, and those that are arriving."""

    def __init__(self, parcels: Sequence[Parcel]) -> None:
        self._parcels = parcels
        self._arriving: dict[int, Any] = {}

    def lacks(self) -> list[int]:
        """The positions of the parcels that this machine's cache does not have."""
        return [n for n, parcel in enumerate(self._parcels) if not _home(parcel).is_dir()]

    def take(self, number: int, piece: bytes) -> None:
        """The next piece of a parcel."""
        if number not in self._arriving:
            cache = cache_root()
            self._arriving[number] = tempfile.TemporaryFile(dir=cache)  # noqa: SIM115
        self._arriving[number].write(piece)

    def settle(self, number: int, digest: str, mode: int, mtime_ns: int) -> None:
        """All pieces are there: unpack them. Raises DataError where they are not what was sent."""
        parcel = self._parcels[number]
        with self._arriving.pop(number) as file:
            file.seek(0)
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise DataError(f"{parcel.path} did not arrive whole: begin again")

            def fill(root: Path) -> None:
                kind = UpperWriter if parcel.kind == "upper" else TreeWriter
                writer = kind(root, sandbox_uid(), str(parcel.path))
                if parcel.kind != "file":
                    writer.directory("", mode, mtime_ns)
                file.seek(0)
                tar.write_all(file, writer)
                writer.finish()

            unpacked(cache_root(), _home(parcel).name, fill)

    def places(self) -> dict[Path, Path]:
        """Where this machine has each parcel, by where the driver's has it. All have to be there;
        while this process lives, nothing removes them."""
        return {parcel.path: _held(parcel) for parcel in self._parcels}


class UpperWriter(TreeWriter):
    """Writes an overlay's upper directory: what the archive marks as deleted becomes what the
    kernel takes for that."""

    def marks(self, name: str) -> bool:
        """Deal with a mark of deletion."""
        above, _, last = name.rstrip("/").rpartition("/")
        if last == layered_writer.OPAQUE:
            os.setxattr(self._full(self.clean(above)), OPAQUE, b"y")
            return True
        if last.startswith(layered_writer.MARK):
            hidden = last.removeprefix(layered_writer.MARK)
            path = self._place(f"{above}/{hidden}" if above else hidden)
            os.mknod(path, stat.S_IFCHR, 0)
            return True
        return False


def _home(parcel: Parcel) -> Path:
    return cache_root() / "layers" / f"{parcel.key}-{sandbox_uid()}"


def _held(parcel: Parcel) -> Path:
    home = unpacked(cache_root(), _home(parcel).name, _absent)
    if parcel.kind == "file":
        return home / parcel.path.absolute().parent.name / parcel.path.name
    return home


def _absent(root: Path) -> None:
    raise SandboxError(f"{root} was removed while an environment was made that needs it")
