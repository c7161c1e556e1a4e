"""Sends artifacts to nodes: as archives in chunks, which a node unpacks once for each content."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from intercode.core.errors import SandboxError
from intercode.environments.ray.environment_spec import NodeFiles
from intercode_sandbox.images.archives import tar
from intercode_sandbox.images.archives.tree_writer import TreeWriter
from intercode_sandbox.images.archives.upper_layer_writer import UpperLayerWriter
from intercode_sandbox.images.cache.trees import cached_tree
from intercode_sandbox.overlay_format import write_layer
from intercode_sandbox.platforms.paths import cache_root, sandbox_uid

CHUNK_SIZE = 4 << 20
"""Bytes of a chunk, which the object store of a node has to hold."""


def pack(artifact: NodeFiles, put: Callable[[bytes], None]) -> tuple[int, int]:
    """Pass the content of an artifact to ``put``, as an archive in chunks.

    Returns the mode and the modification time (in nanoseconds) of the directory. Raises
    SandboxError for files that cannot be read.
    """
    try:
        info = os.stat(artifact.path)
        with io.BufferedWriter(_Chunks(put), CHUNK_SIZE) as out:
            if artifact.kind == "file":
                _write_file(out, artifact.path)
            else:
                write_layer(out, artifact.path)
    except OSError as e:
        raise SandboxError(f"{artifact.path} cannot be sent to a node: {e}") from e
    return stat.S_IMODE(info.st_mode), info.st_mtime_ns


def _write_file(out: Any, path: Path) -> None:
    with (
        tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as archive,
        path.open("rb") as file,
    ):
        info, entry = os.fstat(file.fileno()), tarfile.TarInfo()
        entry.name = f"{path.absolute().parent.name}/{path.name}"
        entry.size, entry.mode, entry.mtime = info.st_size, stat.S_IMODE(info.st_mode), 0
        archive.addfile(entry, file)


class _Chunks(io.RawIOBase):
    """A file that passes each write on, of at most CHUNK_SIZE bytes."""

    def __init__(self, put: Callable[[bytes], None]) -> None:
        self._put = put

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        chunk = bytes(data[:CHUNK_SIZE])
        self._put(chunk)
        return len(chunk)


def unpack(artifact: NodeFiles, chunks: Iterable[bytes], mode: int, mtime_ns: int) -> None:
    """Unpack an artifact on a node. Raises DataError if its archive is not complete."""

    def fill(root: Path) -> None:
        kind = UpperLayerWriter if artifact.kind == "upper" else TreeWriter
        writer = kind(root, sandbox_uid(), str(artifact.path))
        if artifact.kind != "file":
            writer.directory("", mode, mtime_ns)
        with tempfile.TemporaryFile(dir=cache_root()) as file:
            file.writelines(chunks)
            file.seek(0)
            tar.write_entries(file, writer)
        writer.finish()

    cached_tree(cache_root(), _cache_directory(artifact).name, fill)


def is_missing(artifact: NodeFiles) -> bool:
    """Return whether an artifact is not in this machine's cache."""
    return not _cache_directory(artifact).is_dir()


def local_path(artifact: NodeFiles) -> Path:
    """Return the path of an unpacked artifact on this machine. It is not removed while this process
    lives. Raises SandboxError if it was removed before."""
    home = cached_tree(cache_root(), _cache_directory(artifact).name, _raise_removed)
    if artifact.kind == "file":
        return home / artifact.path.absolute().parent.name / artifact.path.name
    return home


def _cache_directory(artifact: NodeFiles) -> Path:
    return cache_root() / "layers" / f"{artifact.key}-{sandbox_uid()}"


def _raise_removed(root: Path) -> None:
    raise SandboxError(f"{root} was removed while an environment was made that needs it")
