"""Unpacks tar archives as images or layers."""

from __future__ import annotations

import errno
import os
import stat
import tarfile
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import IO, cast

from intercode_sandbox.errors import DataError
from intercode_sandbox.images.archives.streams import (
    CHUNK_SIZE,
    DECOMPRESSION_ERRORS,
    EndingReader,
    decompress,
)
from intercode_sandbox.images.archives.tree_writer import TreeWriter

_MAX_EXTENDED_HEADER = 1 << 20
"""Size limit in bytes of an extended header, which tarfile reads into memory."""
_ARCHIVE_ERRNOS = (errno.ENAMETOOLONG, errno.ENOENT, errno.EINVAL, errno.ELOOP, errno.ENOTDIR)
"""Kernel errors for invalid names or links in an archive, which become a DataError."""
_EXTENDED_TYPES = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


_WITH_CONTENT = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)


class StrictTarInfo(tarfile.TarInfo):
    """A tar entry that raises ReadError for a broken or oversized header.

    tarfile itself treats a broken header as the end of the archive.
    """

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> StrictTarInfo:
        try:
            return super().fromtarfile(tarfile_)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # typeshed leaves it out
            raise
        except tarfile.HeaderError as e:
            raise tarfile.ReadError(f"{e} at byte {tarfile_.offset}") from e

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> StrictTarInfo:
        found = super().frombuf(buf, encoding, errors)
        if found.type in _EXTENDED_TYPES and found.size > _MAX_EXTENDED_HEADER:
            raise tarfile.ReadError(
                f"a header of {found.size} bytes, more than the allowed {_MAX_EXTENDED_HEADER}"
            )
        return found


def unpack(path: Path, root: Path, owner: int) -> None:
    """Unpack the archive at ``path`` (plain, gzip, bzip2, xz or zstd) into the empty directory
    ``root``.

    ``owner`` becomes the owner of every file if this process is root. Modes without set-id bits,
    times in nanoseconds, hard and symbolic links and named pipes are preserved; device nodes and
    everything below ``/dev`` are left out. Raises DataError for an archive that is broken, refers
    to paths outside ``root`` or exceeds ``UnpackLimits``, and UsageError for a zstd archive if this
    Python cannot decompress zstd.
    """
    writer = TreeWriter(root, owner, str(path), keeps_programs=True)
    with path.open("rb") as f:
        write_entries(f, writer)
    writer.finish()


def write_entries(source: IO[bytes], writer: TreeWriter) -> None:
    """Write every entry of an archive, which may be compressed.

    Raises DataError for an archive that is broken or hostile.
    """
    try:
        stream = cast(IO[bytes], EndingReader(decompress(source, writer.origin)))
        with tarfile.open(
            fileobj=stream, mode="r|", tarinfo=StrictTarInfo, bufsize=CHUNK_SIZE
        ) as archive:
            while (member := archive.next()) is not None:
                _write_entry(archive, member, writer)
                vars(archive)["members"] = []  # otherwise tarfile keeps every entry in memory
            for _ in iter(lambda: stream.read(CHUNK_SIZE), b""):
                pass  # read to the end, because the digest covers the whole stream
    except DataError:
        raise
    except (OSError, tarfile.TarError, ValueError, OverflowError, *DECOMPRESSION_ERRORS) as e:
        if isinstance(e, OSError) and e.errno is not None and e.errno not in _ARCHIVE_ERRNOS:
            raise
        reason = str(e).partition("\n")[0] or type(e).__name__
        raise DataError(
            f"{writer.origin} is not a complete tar archive: {reason}; make or fetch it again"
        ) from e


def _write_entry(archive: tarfile.TarFile, member: tarfile.TarInfo, writer: TreeWriter) -> None:
    name, when = member.name, mtime_ns(member)
    if writer.handle_whiteout(name):
        return
    clean = writer.normalize(name)
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
            raise DataError(f"{writer.origin}: {name!r} has no content")
        with source:
            writer.file(clean, source, member.size, _mode_for_root(member), when)
    elif member.isfifo():
        writer.fifo(clean, member.mode, when)
    elif not member.isdev():
        raise DataError(f"{writer.origin}: {name!r} has the unknown type {member.type!r}")


def _mode_for_root(member: tarfile.TarInfo) -> int:
    """Return the mode of a file, without a set-user-ID bit that is not root's: root owns all files
    of an image."""
    return member.mode & ~stat.S_ISUID if member.uid else member.mode


def has_more_entries(source: IO[bytes], most: int) -> bool:
    """Return whether an uncompressed archive is seen to have more entries than ``most``. Reads only
    its headers, and gives up at one that it does not know."""
    count = 0
    while count <= most:
        header = source.read(tarfile.BLOCKSIZE)
        kind, size = header[156:157], header[124:135]
        if header[257:262] != b"ustar" or not size.isdigit():
            return False
        length = -(-int(size, 8) // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
        if kind in _EXTENDED_TYPES:
            content = source.read(min(length, _MAX_EXTENDED_HEADER))
            if b" size=" in content or b" GNU.sparse" in content:
                return False
        else:
            count += 1
            if kind in _WITH_CONTENT:
                source.seek(length, os.SEEK_CUR)
    return True


def refuse_sparse_entries(path: Path) -> None:
    """Raise DataError for an uncompressed archive with a sparse file, which unpacks to more bytes
    than the archive has, or with an entry that cannot be read."""
    try:
        with tarfile.open(path, mode="r:", tarinfo=StrictTarInfo) as archive:
            while (member := archive.next()) is not None:
                if member.issparse():
                    raise DataError(f"{member.name!r} is a sparse file: leave out its holes")
                vars(archive)["members"] = []  # otherwise tarfile keeps every entry in memory
    except (OSError, tarfile.TarError, ValueError, OverflowError) as e:
        raise DataError(f"the archive is not a complete tar archive: {e}") from e


def mtime_ns(member: tarfile.TarInfo) -> int:
    """Return the modification time of an entry in nanoseconds, with the decimals of PAX headers.

    Raises tarfile.ReadError for a time that is not a number.
    """
    text = member.pax_headers.get("mtime")
    if text is None:
        return int(member.mtime) * 10**9
    try:
        return int(Decimal(text) * 10**9)
    except (InvalidOperation, ValueError, OverflowError) as e:
        raise tarfile.ReadError(
            f"{member.name!r} has the time {text!r}, which is not a number"
        ) from e
