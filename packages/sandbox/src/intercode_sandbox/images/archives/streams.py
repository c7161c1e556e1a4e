"""Streams that decompress, hash and count the bytes of an archive."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import importlib
import io
import lzma
import sys
import zlib
from typing import IO, Any, cast

from intercode_sandbox.errors import DataError, UsageError

CHUNK_SIZE = 1 << 18
DECOMPRESSION_ERRORS = (zlib.error, lzma.LZMAError, EOFError)
"""Errors of the decompressors for broken data, besides OSError without errno."""
_GZIP, _BZIP2, _XZ, _ZSTD = b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"
_MAX_EMPTY_READS = 8
_ZSTD_WINDOW_LOG = 27
"""Binary logarithm of the memory limit in bytes for zstd data."""


class _Reader(io.RawIOBase):
    """A stream whose subclasses read up to a number of bytes in ``read_some``."""

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to ``size`` bytes; without a size, one chunk."""
        return self.read_some(CHUNK_SIZE if size is None or size < 0 else size)

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def read_some(self, size: int) -> bytes:
        """Return up to ``size`` bytes, none at the end."""
        raise NotImplementedError


class HashingReader(_Reader):
    """A stream that counts the bytes read through it and computes their SHA-256.

    Raises DataError after more than ``limit`` bytes. Without ``hashing`` it only counts.
    """

    def __init__(self, source: IO[bytes], origin: str, limit: int, hashing: bool = True) -> None:
        self._source = source
        self._origin = origin
        self._limit = limit
        self._hash = hashlib.sha256() if hashing else None
        self.count = 0

    def read_some(self, size: int) -> bytes:
        data = self._source.read(size)
        self.count += len(data)
        if self.count > self._limit:
            raise DataError(
                f"{self._origin} has more than the allowed {self._limit} bytes; "
                "set INTERCODE_IMAGE_LIMIT (such as 200G) if you trust it"
            )
        if self._hash is not None:
            self._hash.update(data)
        return data

    def drain(self) -> str:
        """Read to the end and return the digest of all bytes as ``sha256:<hex>``; empty without
        hashing."""
        while self.read(CHUNK_SIZE):
            pass
        return f"sha256:{self._hash.hexdigest()}" if self._hash else ""


class EndingReader(_Reader):
    """A stream that raises EOFError for a reader that does not notice its end.

    ``tarfile`` reads on, as often as the size of an entry says, before it looks for the next one.
    """

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._empty_reads = 0

    def read_some(self, size: int) -> bytes:
        data = self._source.read(size)
        self._empty_reads = 0 if data else self._empty_reads + 1
        if self._empty_reads > _MAX_EMPTY_READS:
            raise EOFError("it ends within an entry")
        return data


class _PrefixedReader(_Reader):
    """A stream that returns ``head``, then the rest of ``source``."""

    def __init__(self, head: bytes, source: IO[bytes]) -> None:
        self._head = head
        self._source = source

    def read_some(self, size: int) -> bytes:
        if not self._head:
            return self._source.read(size)
        data, self._head = self._head[:size], self._head[size:]
        return data


def is_compressed(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` (6 bytes) has a known compression."""
    return head.startswith((_GZIP, _BZIP2, _XZ, _ZSTD))


def decompress(source: IO[bytes], origin: str) -> IO[bytes]:
    """Return a stream of the decompressed bytes of ``source``: gzip, bzip2, xz, zstd or plain.

    The first bytes determine the compression. Raises UsageError for zstd if Python lacks it.
    """
    head = b""
    while len(head) < 6 and (more := source.read(6 - len(head))):
        head += more
    stream = cast(IO[bytes], _PrefixedReader(head, source))
    if head.startswith(_GZIP):
        return cast(IO[bytes], gzip.GzipFile(fileobj=stream))
    if head.startswith(_BZIP2):
        return cast(IO[bytes], bz2.BZ2File(stream))
    if head.startswith(_XZ):
        return cast(IO[bytes], lzma.LZMAFile(stream))
    if head.startswith(_ZSTD):
        return _open_zstd(stream, origin)
    return stream


def _open_zstd(source: IO[bytes], origin: str) -> IO[bytes]:
    if sys.version_info >= (3, 14):
        zstd_module = importlib.import_module("compression.zstd")
        most = {zstd_module.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG}
        return cast(IO[bytes], zstd_module.ZstdFile(source, options=most))
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError as e:
        raise UsageError(
            f"{origin} is compressed with zstd, which needs Python 3.14 or the extra zstd "
            "(pip install 'intercode-sandbox[zstd]'); or unpack it first with zstd -d"
        ) from e
    reader = zstandard.ZstdDecompressor(max_window_size=1 << _ZSTD_WINDOW_LOG).stream_reader(
        source, read_size=CHUNK_SIZE, read_across_frames=True
    )
    return cast(IO[bytes], _ZstdReader(reader, zstandard.ZstdError))


class _ZstdReader(_Reader):
    """A reader of the package zstandard that raises the same errors as the other decompressors."""

    def __init__(self, reader: Any, error: type[Exception]) -> None:
        self._reader = reader
        self._error = error

    def read_some(self, size: int) -> bytes:
        try:
            data: bytes = self._reader.read(size)
        except self._error as e:
            raise EOFError(f"broken zstd data: {e}") from e
        return data
