"""Uses directories as images or layers, in place or as a copy."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from intercode_sandbox.errors import UsageError
from intercode_sandbox.images.archives.tree_writer import TreeWriter
from intercode_sandbox.types import LayerSpec

_ALLOWED_TYPES = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK, stat.S_ISFIFO)


def walk_entries(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield every path below ``root``, relative to it and sorted; the root itself first, as ``""``.

    Raises UsageError for a directory that this process may not read.
    """
    yield "", os.stat(root)
    todo = [""]
    while todo:
        above = todo.pop()
        try:
            with os.scandir(f"{root}/{above}") as found:
                inside = sorted((entry.name, entry.stat(follow_symlinks=False)) for entry in found)
        except PermissionError as e:
            raise UsageError(
                f"cannot read {root}/{above}: make a tar of the tree as its owner, and use tar:PATH"
            ) from e
        for name, status in inside:
            path = f"{above}/{name}" if above else name
            yield path, status
            if stat.S_ISDIR(status.st_mode):
                todo.append(path)


def inspect_tree(root: Path, owner: int) -> tuple[str, bool]:
    """Return a digest of the tree's listing as hex, and whether a sandbox can use it in place.

    The listing is path, mode, size, time and link target of every entry. A tree can be used in
    place if ``owner`` owns all of it and it has no device, no socket and no set-id bit.
    """
    digest = hashlib.sha256()
    usable = True
    for path, status in walk_entries(root):
        mode = status.st_mode
        target = os.readlink(f"{root}/{path}") if stat.S_ISLNK(mode) else ""
        size = 0 if stat.S_ISDIR(mode) else status.st_size
        line = repr((path, mode, size, status.st_mtime_ns, target))
        digest.update(line.encode("utf-8", "surrogateescape") + b"\n")
        usable = usable and (
            status.st_uid == owner
            and any(test(mode) for test in _ALLOWED_TYPES)
            and (stat.S_ISDIR(mode) or not mode & (stat.S_ISUID | stat.S_ISGID))
        )
    return digest.hexdigest(), usable


def copy_tree(source: Path, root: Path, owner: int) -> None:
    """Copy a tree into the empty directory ``root``, with owner and modes as ``tar.unpack`` does.

    Hard links stay hard links. Raises UsageError for a file that this process may not read.
    """
    writer = TreeWriter(root, owner, str(source), keeps_programs=True)
    first: dict[tuple[int, int], str] = {}
    for path, status in walk_entries(source):
        if not path.startswith("dev/"):
            _copy_entry(source, path, status, writer, first)
    writer.finish()


def write_layer_files(spec: LayerSpec, root: Path, owner: int) -> None:
    """Copy the files of a ``dir`` specification to its destination below ``root``.

    Raises UsageError for a file that this process may not read, or that is not a regular file.
    """
    writer = TreeWriter(root, owner, str(spec.path))
    at = spec.destination.strip("/")
    for above in PurePosixPath(at).parents[:-1]:
        writer.directory(str(above), 0o755, os.stat(spec.path).st_mtime_ns)
    for path, status in walk_entries(spec.path):
        if not set(path.split("/")).isdisjoint(spec.exclude):
            continue
        name, when = f"{at}/{path}".strip("/"), status.st_mtime_ns
        if not name:
            continue
        if stat.S_ISDIR(status.st_mode):
            writer.directory(name, 0o755, when)
        elif stat.S_ISREG(status.st_mode):
            mode = 0o755 if path in spec.executable else 0o644
            with open(spec.path / path, "rb", buffering=0) as f:
                writer.file(name, f, status.st_size, mode, when)
        else:
            raise UsageError(f"{spec.path / path} is not a plain file: it cannot be copied")
    writer.finish()


def _copy_entry(
    source: Path,
    path: str,
    status: os.stat_result,
    writer: TreeWriter,
    first: dict[tuple[int, int], str],
) -> None:
    mode, when, identity = status.st_mode, status.st_mtime_ns, (status.st_dev, status.st_ino)
    if stat.S_ISDIR(mode):
        writer.directory(path, mode, when)
    elif stat.S_ISLNK(mode):
        writer.symlink(path, os.readlink(f"{source}/{path}"), when)
    elif stat.S_ISFIFO(mode):
        writer.fifo(path, mode, when)
    elif stat.S_ISREG(mode) and identity in first:
        writer.hardlink(path, first[identity])
    elif stat.S_ISREG(mode):
        try:
            with open(f"{source}/{path}", "rb", buffering=0) as f:
                writer.file(path, f, status.st_size, _mode_for_root(status), when)
        except PermissionError as e:
            raise UsageError(
                f"cannot read {source}/{path}: make a tar of the tree as its owner, and use "
                "tar:PATH"
            ) from e
        if status.st_nlink > 1:
            first[identity] = path


def _mode_for_root(status: os.stat_result) -> int:
    """Return the mode of a file, without a set-user-ID bit that is neither root's nor of the user
    of this process, who stands for root in a tree of its own."""
    is_root = status.st_uid in (0, os.geteuid())
    return status.st_mode if is_root else status.st_mode & ~stat.S_ISUID
