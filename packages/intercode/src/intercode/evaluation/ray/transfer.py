"""Sends artifacts to nodes: as archives in chunks, which a node unpacks once for each content."""

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
from intercode.evaluation.ray.environment_spec import NodeFiles
from intercode_sandbox.host.paths import cache_root, sandbox_uid
from intercode_sandbox.images.archives import tar
from intercode_sandbox.images.archives.tree_writer import TreeWriter
from intercode_sandbox.images.archives.upper_layer_writer import UpperLayerWriter
from intercode_sandbox.images.cache.trees import cached_tree
from intercode_sandbox.layers import write_layer

CHUNK_SIZE = 4 << 20
"""Bytes of a chunk, which the object store of a node has to hold."""


def send_artifact(artifact: NodeFiles, send: Callable[[bytes], None]) -> tuple[str, int, int]:
    """Pass the content of an artifact to ``send``, as an archive in chunks.

    Returns the SHA-256 of the archive, and the mode and the modification time (in nanoseconds) of
    the directory.

    Raises SandboxError for files that cannot be read.
    """
    out = _ChunkWriter(send)
    try:
        info = os.stat(artifact.path)
        if artifact.kind == "file":
            _write_file(out, artifact.path)
        else:
            write_layer(out, artifact.path)
    except OSError as e:
        raise SandboxError(f"{artifact.path} cannot be sent to a node: {e}") from e
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
    """A file that passes the data written to it on in chunks of CHUNK_SIZE."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self.digest = hashlib.sha256()
        self._send, self._buffer = send, bytearray()

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
        """Pass the rest on."""
        if self._buffer:
            self._send(bytes(self._buffer))
            self._buffer.clear()


class ArtifactReceiver:
    """Receives artifacts on a node."""

    def __init__(self, artifacts: Sequence[NodeFiles]) -> None:
        self._artifacts = artifacts
        self._incoming: dict[int, Any] = {}

    def missing_artifacts(self) -> list[int]:
        """Return the positions of the artifacts that are not in this machine's cache."""
        return [
            n
            for n, artifact in enumerate(self._artifacts)
            if not _cache_directory(artifact).is_dir()
        ]

    def receive(self, number: int, chunk: bytes) -> None:
        """Store the next chunk of an artifact."""
        if number not in self._incoming:
            cache = cache_root()
            self._incoming[number] = tempfile.TemporaryFile(dir=cache)  # noqa: SIM115
        self._incoming[number].write(chunk)

    def unpack(self, number: int, digest: str, mode: int, mtime_ns: int) -> None:
        """Unpack an artifact after its last chunk. Raises DataError if it is not what was sent."""
        artifact = self._artifacts[number]
        with self._incoming.pop(number) as file:
            file.seek(0)
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise DataError(f"{artifact.path} was not received completely: start the run again")

            def fill(root: Path) -> None:
                kind = UpperLayerWriter if artifact.kind == "upper" else TreeWriter
                writer = kind(root, sandbox_uid(), str(artifact.path))
                if artifact.kind != "file":
                    writer.directory("", mode, mtime_ns)
                file.seek(0)
                tar.write_entries(file, writer)
                writer.finish()

            cached_tree(cache_root(), _cache_directory(artifact).name, fill)

    def local_paths(self) -> dict[Path, Path]:
        """Return the path of each artifact on this machine, by its path on the driver's.

        All artifacts have to be unpacked. They are not removed while this process lives.
        """
        return {artifact.path: _local_path(artifact) for artifact in self._artifacts}


def _cache_directory(artifact: NodeFiles) -> Path:
    return cache_root() / "layers" / f"{artifact.key}-{sandbox_uid()}"


def _local_path(artifact: NodeFiles) -> Path:
    home = cached_tree(cache_root(), _cache_directory(artifact).name, _raise_removed)
    if artifact.kind == "file":
        return home / artifact.path.absolute().parent.name / artifact.path.name
    return home


def _raise_removed(root: Path) -> None:
    raise SandboxError(f"{root} was removed while an environment was made that needs it")
