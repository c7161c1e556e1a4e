"""The format of an overlay's upper layer, and its form as a tar archive of an image.

In a directory, a character device 0:0 (whiteout) marks a deleted path, and an attribute a directory
that hides everything below it (opaque). In an archive, names that begin with ``.wh.`` mark them.
"""

from __future__ import annotations

import os
import stat
import tarfile
from pathlib import Path
from typing import Any

from intercode.core.paths import sandbox_uid
from intercode.sandbox.supervisor.runtime.overlay import OPAQUE_ATTRIBUTE, is_opaque

__all__ = ["OPAQUE_ATTRIBUTE", "is_opaque", "write_layer"]

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def write_layer(out: Any, root: Path) -> None:
    """Write a tree as an uncompressed tar layer, always with the same bytes. Whiteouts of an
    overlay are written as those of the image format. Raises OSError."""
    seen: dict[tuple[int, int], str] = {}
    top = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with tarfile.open(
            fileobj=out, mode="w|", format=tarfile.PAX_FORMAT, bufsize=1 << 20
        ) as layer:
            _add_directory(layer, top, "", seen)
    finally:
        os.close(top)


def _add_directory(
    layer: tarfile.TarFile, at: int, prefix: str, seen: dict[tuple[int, int], str]
) -> None:
    for name in sorted(os.listdir(at)):
        info = os.stat(name, dir_fd=at, follow_symlinks=False)
        path = prefix + name
        if stat.S_ISCHR(info.st_mode) and info.st_rdev == 0:
            layer.addfile(_tar_entry(f"{prefix}.wh.{name}", info, tarfile.REGTYPE))
        elif stat.S_ISDIR(info.st_mode):
            layer.addfile(_tar_entry(path, info, tarfile.DIRTYPE))
            inner = os.open(name, _DIRECTORY, dir_fd=at)
            try:
                if is_opaque(inner):
                    layer.addfile(_tar_entry(f"{path}/.wh..wh..opq", info, tarfile.REGTYPE))
                _add_directory(layer, inner, f"{path}/", seen)
            finally:
                os.close(inner)
        elif stat.S_ISLNK(info.st_mode):
            link = _tar_entry(path, info, tarfile.SYMTYPE)
            link.linkname = os.readlink(name, dir_fd=at)
            layer.addfile(link)
        elif stat.S_ISFIFO(info.st_mode):
            layer.addfile(_tar_entry(path, info, tarfile.FIFOTYPE))
        elif stat.S_ISREG(info.st_mode):
            _add_file(layer, name, at, path, seen)


def _add_file(
    layer: tarfile.TarFile, name: str, at: int, path: str, seen: dict[tuple[int, int], str]
) -> None:
    with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at), "rb") as file:
        info = os.fstat(file.fileno())
        key = (info.st_dev, info.st_ino)
        if key in seen:
            link = _tar_entry(path, info, tarfile.LNKTYPE)
            link.linkname = seen[key]
            layer.addfile(link)
            return
        if info.st_nlink > 1:
            seen[key] = path
        entry = _tar_entry(path, info, tarfile.REGTYPE)
        entry.size = info.st_size
        layer.addfile(entry, file)


def _tar_entry(path: str, info: os.stat_result, kind: bytes) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path)
    entry.type, entry.mode = kind, stat.S_IMODE(info.st_mode)
    entry.uid = entry.gid = sandbox_uid()
    entry.mtime, nanoseconds = divmod(info.st_mtime_ns, 10**9)
    if nanoseconds:
        entry.pax_headers = {"mtime": f"{entry.mtime}.{nanoseconds:09d}"}
    return entry
