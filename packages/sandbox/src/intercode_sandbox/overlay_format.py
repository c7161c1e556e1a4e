"""The format of an overlay's upper layer: copies of it, and its form as a tar archive of an image.

In a directory, a character device 0:0 (whiteout) marks a deleted path, and an attribute a directory
that hides everything below it (opaque). In an archive, names that begin with ``.wh.`` mark them.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tarfile
from pathlib import Path
from typing import Any

from intercode_sandbox.platforms.files import O_CLOEXEC, O_DIRECTORY, O_NOFOLLOW
from intercode_sandbox.platforms.paths import sandbox_uid

OPAQUE_ATTRIBUTE = "user.overlay.opaque"
_MARK_PREFIXES = ("user.overlay.", "trusted.overlay.")
_HARMLESS_MARKS = ("origin", "impure", "nlink", "uuid", "overlay.")
"""Marks of an overlay that change inode numbers at most. The last one is the prefix of attributes
that processes in the sandbox have given a name of an overlay's marks."""
_CHUNK = 1 << 30
_MAX_DEPTH = 100
_DIRECTORY = os.O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC


def write_layer(out: Any, root: Path) -> None:
    """Write a tree as an uncompressed tar layer, always with the same bytes. Whiteouts of an
    overlay are written as those of the image format. Raises OSError."""
    seen: dict[tuple[int, int], str] = {}
    top = os.open(root, os.O_RDONLY | O_DIRECTORY | O_CLOEXEC)
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
    with open(os.open(name, os.O_RDONLY | O_NOFOLLOW | O_CLOEXEC, dir_fd=at), "rb") as file:
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


def copy_tree(source: int, target: int, depth: int = 0) -> None:
    """Copy everything from one directory descriptor to another: content, holes, modes, times,
    links, FIFOs, whiteouts and opaque marks.

    Existing entries of the target count as a layer below and are replaced, except directories,
    which are merged unless they are opaque. Sockets are left out, because nothing could listen on
    them, and so are entries more than a hundred levels deep.
    """
    with os.scandir(source) as entries:
        names = [entry.name for entry in entries]
    existing_names = set(os.listdir(target))
    for name in names:
        try:
            info = os.stat(name, dir_fd=source, follow_symlinks=False)
        except FileNotFoundError:
            continue
        if name in existing_names:
            _remove_hidden(name, info, source, target)
        if stat.S_ISDIR(info.st_mode):
            _copy_directory(name, source, target, depth)
            _copy_mode_and_times(name, info, target)
        else:
            copy_entry(name, info, source, target)
    _copy_user_attributes(source, target)


def copy_entry(name: str, info: os.stat_result, source: int, target: int) -> None:
    """Copy an entry other than a directory to a name that does not exist yet. Sockets are left
    out."""
    if stat.S_ISREG(info.st_mode):
        _copy_file(name, source, target)
    elif stat.S_ISLNK(info.st_mode):
        os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
    elif stat.S_ISFIFO(info.st_mode) or stat.S_ISCHR(info.st_mode):
        os.mknod(name, info.st_mode, info.st_rdev, dir_fd=target)
    else:
        return
    _copy_mode_and_times(name, info, target)


def _copy_mode_and_times(name: str, info: os.stat_result, target: int) -> None:
    """Set the mode and times of a copy. Files lose their set-id bits: others could run the copy
    with the rights of this process's user."""
    mode = stat.S_IMODE(info.st_mode)
    if not stat.S_ISDIR(info.st_mode):
        mode &= ~(stat.S_ISUID | stat.S_ISGID)
    if not stat.S_ISLNK(info.st_mode):
        os.chmod(name, mode, dir_fd=target)
    times = (info.st_atime_ns, info.st_mtime_ns)
    os.utime(name, ns=times, dir_fd=target, follow_symlinks=False)


def _remove_hidden(name: str, info: os.stat_result, source: int, target: int) -> None:
    """Remove what an entry of a higher layer hides."""
    old = os.stat(name, dir_fd=target, follow_symlinks=False)
    if not stat.S_ISDIR(old.st_mode):
        os.unlink(name, dir_fd=target)
        return
    if stat.S_ISDIR(info.st_mode):
        inner = os.open(name, _DIRECTORY, dir_fd=source)
        try:
            if not is_opaque(inner):
                return
        finally:
            os.close(inner)
    _remove_tree(name, target)


def _remove_tree(name: str, parent: int) -> None:
    """Remove a directory and everything in it. Nothing else may change it during the call."""
    fd = os.open(name, _DIRECTORY, dir_fd=parent)
    try:
        os.chmod(fd, 0o700)
        for entry in os.listdir(fd):
            if stat.S_ISDIR(os.stat(entry, dir_fd=fd, follow_symlinks=False).st_mode):
                _remove_tree(entry, fd)
            else:
                os.unlink(entry, dir_fd=fd)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=parent)


def _copy_directory(name: str, source: int, target: int, depth: int) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=target)
    inner = os.open(name, _DIRECTORY, dir_fd=source)
    outer = os.open(name, _DIRECTORY, dir_fd=target)
    try:
        os.chmod(outer, 0o700)
        if depth < _MAX_DEPTH:
            copy_tree(inner, outer, depth + 1)
    finally:
        os.close(inner)
        os.close(outer)


def is_opaque(fd: int) -> bool:
    """Return whether a directory of an upper layer hides everything below it."""
    if not hasattr(os, "listxattr"):  # without overlays, no directory is marked
        return False
    return OPAQUE_ATTRIBUTE in os.listxattr(fd) and os.getxattr(fd, OPAQUE_ATTRIBUTE) == b"y"


def _copy_file(name: str, source: int, target: int) -> None:
    inner = os.open(name, os.O_RDONLY | O_NOFOLLOW | O_CLOEXEC, dir_fd=source)
    try:
        outer = os.open(
            name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | O_CLOEXEC, 0o600, dir_fd=target
        )
        try:
            _copy_data(inner, outer)
            _copy_user_attributes(inner, outer)
        finally:
            os.close(outer)
    finally:
        os.close(inner)


def _copy_data(source: int, target: int) -> None:
    """Copy the content of a file and keep its holes."""
    size = os.fstat(source).st_size
    os.ftruncate(target, size)
    position = 0
    while position < size:
        try:
            start = os.lseek(source, position, os.SEEK_DATA)
        except OSError:  # only a hole is left
            return
        position = end = os.lseek(source, start, os.SEEK_HOLE)
        os.lseek(target, start, os.SEEK_SET)
        while start < end and (
            sent := os.sendfile(target, source, start, min(end - start, _CHUNK))
        ):
            start += sent


def _copy_user_attributes(source: int, target: int) -> None:
    for name in os.listxattr(source):
        if name.startswith("user."):
            os.setxattr(target, name, os.getxattr(source, name))


def find_forged_mark(root: Path) -> str:
    """Return what an upper layer holds that no sandbox writes there, with its path, or an empty
    string: marks that would show other files than its own, and devices. Entries that ``copy_tree``
    leaves out for their depth are not looked at. Raises OSError."""
    top = os.open(root, _DIRECTORY)
    try:
        return _forged_mark(top, "", 0)
    finally:
        os.close(top)


def _forged_mark(directory: int, prefix: str, depth: int) -> str:
    if found := _forged_attribute(directory):
        return f"{prefix or '.'} has {found}"
    for name in sorted(os.listdir(directory)):
        path = f"{prefix}/{name}".lstrip("/")
        info = os.stat(name, dir_fd=directory, follow_symlinks=False)
        mode = info.st_mode
        if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and info.st_rdev != 0):
            return f"{path} is a device"
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            continue
        inner = os.open(name, os.O_RDONLY | O_NOFOLLOW | O_CLOEXEC, dir_fd=directory)
        try:
            if stat.S_ISDIR(mode):
                found = _forged_mark(inner, path, depth + 1) if depth < _MAX_DEPTH else ""
            elif found := _forged_attribute(inner):
                found = f"{path} has {found}"
        finally:
            os.close(inner)
        if found:
            return found
    return ""


def _forged_attribute(fd: int) -> str:
    for name in os.listxattr(fd):
        prefix = next((p for p in _MARK_PREFIXES if name.startswith(p)), "")
        is_sandbox_mark = prefix == _MARK_PREFIXES[0] and (
            name.removeprefix(prefix).startswith(_HARMLESS_MARKS)
            or (name == OPAQUE_ATTRIBUTE and os.getxattr(fd, name) == b"y")
        )
        if prefix and not is_sandbox_mark:
            return f"the attribute {name}"
    return ""
