"""Reads and writes the files of a task's directory, with links, empty directories and modes."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from intercode.core.errors import DataError
from intercode.datasets.files import require_inside
from intercode.integrations.harbor.tasks.task_directory import MAX_FILES_SIZE, Files

_PERMISSIONS = 0o777  # without those bits that let a program run as another user


def read_tree(folder: Path, is_ignored: Callable[[str], bool] = lambda _: False) -> Files:
    """Return content and mode of each entry of a directory, by path relative to it, sorted. The
    content of a link is its target.

    ``is_ignored`` says which paths are left out. Raises DataError if a link is absolute or leads
    out of the directory, or if the files have more than ``MAX_FILES_SIZE`` bytes in total.
    """
    files: Files = {}
    total = 0
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if is_ignored(name):
            continue
        require_inside(path, folder, str(path))
        status = path.lstat()
        content = b""
        if stat.S_ISLNK(status.st_mode):
            target = path.readlink()
            if target.is_absolute():
                raise DataError(f"{path} leads to {target}: make it a relative link")
            content = os.fsencode(target)
        elif stat.S_ISREG(status.st_mode):
            total += status.st_size
            if total > MAX_FILES_SIZE:
                raise DataError(f"the files of {folder} have more than {MAX_FILES_SIZE >> 20} MiB")
            content = path.read_bytes()
        elif not stat.S_ISDIR(status.st_mode):
            continue
        files[name] = content, stat.S_IFMT(status.st_mode) | status.st_mode & _PERMISSIONS
    return files


def write_tree(folder: Path, files: Files) -> None:
    """Write what ``read_tree`` returns. A mode without a type is that of a file.

    Raises DataError for a path that leads out of the directory or through a link. After an error,
    nothing is left, because a partial task looks like a complete one.
    """
    top = folder.absolute()
    try:
        directories = []
        for name, (content, mode) in files.items():
            path = top / name
            if ".." in path.parts or top not in path.parents or _passes_link(path, top):
                raise DataError(
                    f"{name!r} cannot be written: it leads out of {folder} or through a link"
                )
            path.parent.mkdir(parents=True, exist_ok=True)
            if stat.S_ISLNK(mode):
                path.symlink_to(os.fsdecode(content))
            elif stat.S_ISDIR(mode):
                path.mkdir(exist_ok=True)
                directories.append((path, mode))
            else:
                path.write_bytes(content)
                path.chmod(mode & _PERMISSIONS)
        for path, mode in reversed(directories):
            path.chmod(mode & _PERMISSIONS)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _passes_link(path: Path, top: Path) -> bool:
    """Return whether a file that exists, or a directory above it, is a link."""
    inside = [path, *path.parents]
    return any(entry.is_symlink() for entry in inside[: inside.index(top)])
