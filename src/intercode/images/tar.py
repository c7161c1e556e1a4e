"""Unpacking a tar archive as an image or a layer."""

from __future__ import annotations

import lzma
import sys
import tarfile
import zlib
from decimal import Decimal, InvalidOperation
from pathlib import Path

from intercode.errors import DataError
from intercode.images.tree import TreeWriter

_BROKEN = (zlib.error, lzma.LZMAError)
_ZSTD = b"\x28\xb5\x2f\xfd"


class _Member(tarfile.TarInfo):
    """An entry whose broken header is an error, where tarfile would take it for the end."""

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> _Member:
        try:
            return super().fromtarfile(tarfile_)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # typeshed leaves it out
            raise
        except tarfile.HeaderError as e:
            raise tarfile.ReadError(f"{e} at byte {tarfile_.offset}") from e


def unpack(path: Path, root: Path, owner: int) -> None:
    """Unpack the archive at ``path`` (plain, gzip, bzip2 or xz) into the empty directory ``root``.

    Every file is owned by ``owner`` (when this process may decide that). Kept are modes without
    set-id bits, times to the nanosecond where the archive has them, hard and symbolic links and
    named pipes; left out are device nodes and everything below ``/dev``. Zstandard needs a Python
    whose tarfile reads it (3.14). Raises DataError for an archive that is broken or tries to leave
    ``root``.
    """
    writer = TreeWriter(root, owner, str(path))
    try:
        with tarfile.open(path, "r:*", tarinfo=_Member) as archive:
            for member in archive:
                _write(archive, member, writer)
    except DataError:
        raise
    except (OSError, tarfile.TarError, EOFError, ValueError, OverflowError, *_BROKEN) as e:
        if isinstance(e, OSError) and e.errno is not None:
            raise
        raise DataError(f"{path} is no complete tar archive: {_why(path, e)}") from e
    writer.finish()


def _why(path: Path, error: Exception) -> str:
    """What is wrong with an archive, and the way out."""
    with path.open("rb") as f:
        if f.read(4) == _ZSTD and sys.version_info < (3, 14):
            return f"Python before 3.14 reads no zstd; unpack it first: zstd -d {path}"
    reason = str(error).partition("\n")[0] or type(error).__name__
    return f"{reason}; make or fetch it again"


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, writer: TreeWriter) -> None:
    name, when = member.name, mtime_ns(member)
    clean = writer.clean(name)
    if clean.startswith("dev/"):
        return
    if member.isdir():
        writer.directory(clean, member.mode, when)
    elif member.issym():
        writer.symlink(clean, member.linkname, when)
    elif member.islnk():
        writer.hardlink(clean, member.linkname)
    elif member.isfile():
        source = archive.extractfile(member)
        if source is None:
            raise DataError(f"{archive.name!r}: {name!r} has no content")
        with source:
            writer.file(clean, source, member.size, member.mode, when)
    elif member.isfifo():
        writer.fifo(clean, member.mode, when)
    elif not member.isdev():
        raise DataError(f"{archive.name!r}: {name!r} is of the unknown kind {member.type!r}")


def mtime_ns(member: tarfile.TarInfo) -> int:
    """When an entry was changed, in nanoseconds; a PAX header's decimals are kept.

    Raises tarfile.ReadError for a time that is no number.
    """
    text = member.pax_headers.get("mtime")
    if text is None:
        return int(member.mtime) * 10**9
    try:
        return int(Decimal(text) * 10**9)
    except (InvalidOperation, ValueError, OverflowError) as e:
        raise tarfile.ReadError(f"{member.name!r} has the time {text!r}, no number") from e
