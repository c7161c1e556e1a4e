"""Reads the files of a saved image from a directory or a tar archive."""

from __future__ import annotations

import os
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Protocol

from intercode_sandbox.errors import DataError, UsageError
from intercode_sandbox.images.archives.streams import (
    CHUNK_SIZE,
    DECOMPRESSION_ERRORS,
    HashingReader,
    decompress,
    is_compressed,
)
from intercode_sandbox.images.archives.tar import StrictTarInfo
from intercode_sandbox.images.archives.unpack_limits import image_size_limit
from intercode_sandbox.images.oci.documents import MAX_DOCUMENT_SIZE

_MAX_LINKS = 8


class ImageStore(Protocol):
    """The files of a saved image, by name."""

    origin: str

    def has(self, name: str) -> bool:
        """Return whether the file exists."""

    def open(self, name: str) -> IO[bytes]:
        """Open a file for reading. Raises DataError if there is no regular file ``name``."""


def read_document(store: ImageStore, name: str) -> bytes:
    """Return the content of a small file. Raises DataError if it is absent or too large."""
    with store.open(name) as f:
        data = f.read(MAX_DOCUMENT_SIZE + 1)
    if len(data) > MAX_DOCUMENT_SIZE:
        raise DataError(f"{store.origin}: {name} is larger than {MAX_DOCUMENT_SIZE} bytes")
    return data


class DirectoryStore:
    """The files of a directory."""

    def __init__(self, path: Path) -> None:
        self.origin = str(path)
        self._path = path

    def has(self, name: str) -> bool:
        """Return whether the file exists."""
        return (self._path / name).is_file()

    def open(self, name: str) -> IO[bytes]:
        """Open a file for reading. Raises DataError if there is no regular file ``name``."""
        try:
            descriptor = os.open(self._path / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as e:
            raise DataError(f"{self.origin} lacks {name}: {e.strerror}; save it again") from e
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise DataError(f"{self.origin}: {name} is not a plain file")
        return open(descriptor, "rb")


class TarStore:
    """The files of a seekable tar archive."""

    def __init__(self, archive: tarfile.TarFile, origin: str) -> None:
        self.origin = origin
        self._archive = archive
        self._members: dict[str, tarfile.TarInfo] = {}
        for member in archive:
            self._members[str(PurePosixPath(member.name))] = member
            if len(self._members) > 100_000:
                raise DataError(f"{origin} is not a saved image: it has more than 100000 entries")

    def has(self, name: str) -> bool:
        """Return whether the file exists."""
        return self._find(name) is not None

    def open(self, name: str) -> IO[bytes]:
        """Open a file for reading. Raises DataError if there is no regular file ``name``."""
        member = self._find(name)
        source = self._archive.extractfile(member) if member else None
        if source is None:
            raise DataError(f"{self.origin} lacks {name}: the image is incomplete; save it again")
        return source

    def _find(self, name: str) -> tarfile.TarInfo | None:
        """Return the regular file ``name``, following links inside the archive."""
        name = str(PurePosixPath(name))
        for _ in range(_MAX_LINKS):
            member = self._members.get(name)
            if member is None or member.isreg():
                return member
            if member.issym():
                name = os.path.normpath(PurePosixPath(name).parent / member.linkname)
            elif member.islnk():
                name = str(PurePosixPath(member.linkname))
            else:
                return None
        return None


@contextmanager
def open_store(path: Path, spec: str, cache: Path) -> Iterator[ImageStore]:
    """Open the store at ``path``: a directory, or a tar archive, which may be compressed.

    Raises UsageError if it does not exist, DataError for a broken archive.
    """
    if path.is_dir():
        yield DirectoryStore(path)
        return
    if not path.is_file():
        raise UsageError(f"{spec}: there is no file {path}")
    with path.open("rb") as f:
        plain = _decompressed_file(f, path, cache)
        try:
            with tarfile.open(fileobj=plain, mode="r:", tarinfo=StrictTarInfo) as archive:
                yield TarStore(archive, str(path))
        except (tarfile.TarError, *DECOMPRESSION_ERRORS) as e:
            raise DataError(f"{path} is not a complete tar archive: {e}; save it again") from e
        finally:
            plain.close()


def _decompressed_file(file: IO[bytes], path: Path, cache: Path) -> IO[bytes]:
    """Return the file itself, or its decompressed content in an anonymous file."""
    compressed = is_compressed(file.read(6))
    file.seek(0)
    if not compressed:
        return file
    limit = image_size_limit()
    decompressed: IO[bytes] = tempfile.TemporaryFile(dir=cache)  # noqa: SIM115  # closed by the caller
    try:
        source = HashingReader(decompress(file, str(path)), str(path), limit)
        while data := source.read(CHUNK_SIZE):
            decompressed.write(data)
    except (OSError, *DECOMPRESSION_ERRORS) as e:
        decompressed.close()
        if isinstance(e, OSError) and e.errno is not None:
            raise
        raise DataError(f"{path} is broken: {e}; save it again") from e
    except DataError:
        decompressed.close()
        raise
    decompressed.seek(0)
    return decompressed
