"""File trees that are described by text, and written with the same bytes, modes and times anywhere.

A description is a text file. A line that begins with ``@`` opens an entry::

    @ 0644 2024-05-02T09:10 /path/of a file        its content follows, line by line
    @ 0755 2024-05-02T09:10 /path/of a directory/
    @ link 2024-05-02T09:10 /path/of a link -> target

Times are UTC. In contents ``␉`` stands for a tab, ``␠`` for a space at the end of a line and ``␍``
for a carriage return, so that editors cannot remove them.
"""

from __future__ import annotations

import calendar
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from intercode.core.errors import DataError
from intercode.core.types import TreeEntry, tree_digest
from intercode_sandbox.platforms.paths import cache_root

EPOCH = calendar.timegm((2024, 5, 3, 15, 0, 0))
"""The modification time of directories that are not described (seconds since 1970, UTC)."""

_SIGNS = str.maketrans({"␉": "\t", "␠": " ", "␍": "\r"})


def parse_description(text: str, name: str) -> Iterator[TreeEntry]:
    """Yield the entries of one description. ``name`` is what messages call it.

    Raises DataError with the line of a broken ``@`` line, or of content that belongs to no file.
    """
    head: TreeEntry | None = None
    body: list[str] = []
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        if line.startswith("@ "):
            if head:
                yield head.with_data("".join(body))
            head, body = _parse_head(line, f"{name}:{number}"), []
        elif head is None or head.kind != "file":
            raise DataError(f"{name}:{number}: {line!r} belongs to no file; open one with '@ '")
        else:
            body.append(line.translate(_SIGNS) + "\n")
    if head:
        yield head.with_data("".join(body))


def _parse_head(line: str, where: str) -> TreeEntry:
    try:
        _, mode, stamp, path = line.split(" ", 3)
        mtime = calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M"))
        if mode == "link":
            path, target = path.split(" -> ")
            return TreeEntry("link", path, 0o777, mtime, target=target)
        is_directory = path.endswith("/")
        return TreeEntry("dir" if is_directory else "file", path.rstrip("/"), int(mode, 8), mtime)
    except ValueError as e:
        raise DataError(f"{where}: {line!r} is not '@ MODE|link TIME /path' ({e})") from e


def empty_directory(path: str) -> list[TreeEntry]:
    """Return one empty directory and its parents, without dates."""
    parents = [str(parent) for parent in PurePosixPath(path).parents if str(parent) != "/"]
    return [TreeEntry("dir", name, 0o755, None) for name in (*reversed(parents), path)]


def cached_entries(name: str, entries: Sequence[TreeEntry], digest: str = "") -> Path:
    """Return the directory of a tree in the cache; write it first if it does not exist.

    ``name``: the beginning of its path below the cache. ``digest``: the ``tree_digest`` of the
    entries, if the caller knows it. The directory is written under another name and renamed, so
    that no reader sees a part of it. If several processes write it at once, the first to finish
    wins; their results are equal.
    """
    path = cache_root() / f"{name}-{digest or tree_digest(entries)}"
    if path.is_dir():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        write_entries(temporary, entries)
        try:
            temporary.rename(path)
        except OSError:
            if not path.is_dir():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return path


def write_entries(dest: Path, entries: Sequence[TreeEntry]) -> None:
    """Write ``entries`` (parents before children) below ``dest``, which is created if absent.

    Bytes, modes and modification times do not depend on the machine, the umask or the day; the
    caller owns the files. Raises OSError if something cannot be written.
    """
    dest.mkdir(parents=True, exist_ok=True)
    for entry in entries:
        path = dest / entry.path.lstrip("/")
        if entry.kind == "dir":
            path.mkdir()
        elif entry.kind == "link":
            path.symlink_to(entry.target)
        else:
            path.write_bytes(entry.data)
    for entry in reversed(entries):  # children first: writing into a directory changes its time
        path = dest / entry.path.lstrip("/")
        if entry.kind != "link":
            path.chmod(entry.mode)
        if entry.mtime is not None:
            os.utime(path, (entry.mtime, entry.mtime), follow_symlinks=False)
    dest.chmod(0o755)
    if any(entry.mtime is not None for entry in entries):
        os.utime(dest, (EPOCH, EPOCH))
