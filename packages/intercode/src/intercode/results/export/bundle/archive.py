"""The archives of bundles: a few named files in a ``.tar.gz``.

The same content gives the same bytes. Archives are read as untrusted input: nothing is unpacked,
and only plain files with expected names are read, each once, up to a size.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from intercode.core.errors import DataError

_BLOCK = 512
_CHUNK = 1 << 20


def is_bundle(path: Path) -> bool:
    """Return whether a path names a bundle, by how its name ends."""
    return path.name.endswith((".tar.gz", ".tgz"))


def write_archive(out: Path, files: Mapping[str, bytes]) -> None:
    """Write files in the order of their names, without times, owners or other local data."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with (
        out.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed,
        tarfile.open(mode="w", fileobj=packed, format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(files[name]), 0o644
            archive.addfile(member, io.BytesIO(files[name]))


def read_archive(path: Path, known: Mapping[str, int]) -> dict[str, bytes]:
    """Return the files of an archive. ``known`` maps the allowed names to their largest sizes in
    bytes.

    Raises DataError for an invalid archive: an unexpected or repeated name, anything but a plain
    file (a link, a device, a header that enlarges another), a file that is too large, or a
    truncated archive.
    """
    files: dict[str, bytes] = {}
    if path.is_dir():
        raise DataError(
            f"{path} is a directory; a bundle is the file that `intercode export {path} --to "
            "bundle --out FILE.tar.gz` writes"
        )
    try:
        with path.open("rb") as raw, gzip.GzipFile(fileobj=raw) as unpacked:
            for member in _read_headers(unpacked, path):
                _check_member(member, known, files, path)
                files[member.name] = _read_content(unpacked, member, path)
    except (OSError, EOFError, zlib.error) as e:
        why = e.strerror if isinstance(e, OSError) and e.strerror else e
        raise DataError(f"{path} cannot be read as a bundle: {why}") from e
    return files


def _read_headers(unpacked: gzip.GzipFile, path: Path) -> Iterator[tarfile.TarInfo]:
    """Yield headers in order; the caller reads the content before requesting the next."""
    while block := unpacked.read(_BLOCK):
        if block == bytes(_BLOCK):
            return
        try:
            yield tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        except (tarfile.HeaderError, UnicodeDecodeError) as e:
            raise DataError(f"{path} is not a bundle: it has an invalid header ({e})") from e
    raise DataError(f"{path} is not a bundle: it is truncated")


def _check_member(
    member: tarfile.TarInfo, known: Mapping[str, int], files: Mapping[str, bytes], path: Path
) -> None:
    name = member.name
    if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
        raise DataError(f"{path} is refused: {name!r} in it is not a plain file")
    if name not in known:
        raise DataError(f"{path} is refused: a bundle holds no {name!r}")
    if name in files:
        raise DataError(f"{path} is refused: it holds {name!r} twice")
    if not 0 <= member.size <= known[name]:
        raise DataError(
            f"{path} is refused: {name!r} in it has {member.size} bytes, "
            f"and at most {known[name]} are read"
        )


def _read_content(unpacked: gzip.GzipFile, member: tarfile.TarInfo, path: Path) -> bytes:
    out = bytearray()
    while len(out) < member.size:
        chunk = unpacked.read(min(_CHUNK, member.size - len(out)))
        if not chunk:
            raise DataError(f"{path} is not a bundle: {member.name!r} in it is truncated")
        out += chunk
    unpacked.read(-member.size % _BLOCK)
    return bytes(out)
