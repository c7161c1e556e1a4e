"""Archives with the same bytes on every machine and with every version of a compressor."""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Mapping

_MTIME = 1714464000  # 2024-04-30 08:00 UTC


def make_tar(members: Mapping[str, bytes]) -> bytes:
    """Return a GNU tar archive of regular files, mode 0644, owned by id 0 without a name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.mode = len(data), _MTIME, 0o644
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def make_gzip(data: bytes) -> bytes:
    """Return ``data`` as a gzip file of stored blocks (RFC 1951, 3.2.4; RFC 1952, 2.3).

    It is not compressed, because the output of compressors differs between versions.
    """
    blocks = [data[i : i + 65535] for i in range(0, len(data), 65535)] or [b""]
    body = bytearray(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff")
    for number, block in enumerate(blocks, 1):
        size = len(block)
        body += bytes([number == len(blocks)])
        body += size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little") + block
    tail = zlib.crc32(data).to_bytes(4, "little") + (len(data) % 2**32).to_bytes(4, "little")
    return bytes(body) + tail
