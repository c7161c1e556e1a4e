"""Lays out the file system of the Bash starter tasks, the same to the byte every time.

Most of it is described by the text files in ``description/``. One line opens an entry::

    @ 0644 2024-05-02T09:10 /path/of a file        its content follows, line by line
    @ 0755 2024-05-02T09:10 /path/of a directory/
    @ link 2024-05-02T09:10 /path/of a link -> target

Times are UTC. In contents ``␉`` stands for a tab, ``␠`` for a blank at a line's end and ``␍`` for a
carriage return, so that editors cannot lose them. Logs, tables and archives that would be long to
write out come from ``generated``. Directories that are not described have mode 0755 and ``EPOCH``.
"""

from __future__ import annotations

import calendar
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path, PurePosixPath

from intercode.core.errors import DataError
from intercode.datasets.bash.starter import generated_files
from intercode.datasets.starter.tree_entry import EntryKind, TreeEntry

EPOCH = calendar.timegm((2024, 5, 3, 15, 0, 0))
"""The modification time of directories that are not described (seconds since 1970, UTC)."""

_SIGNS = str.maketrans({"␉": "\t", "␠": " ", "␍": "\r"})


def entries() -> list[TreeEntry]:
    """Everything in the tree, parents before children, in the order of the paths.

    Raises DataError where a description is malformed or names a path twice.
    """
    found: dict[str, TreeEntry] = {}
    for part in sorted(
        files("intercode.datasets.bash.starter").joinpath("description").iterdir(),
        key=lambda p: p.name,
    ):
        if part.name.endswith(".txt"):
            _add_entries(found, parse_description(part.read_text(encoding="utf-8"), part.name))
    _add_entries(found, generated_files.entries())
    for path in list(found):
        for parent in PurePosixPath(path).parents:
            if str(parent) != "/":
                found.setdefault(str(parent), TreeEntry("dir", str(parent), 0o755, EPOCH))
    return [found[path] for path in sorted(found, key=lambda p: p.split("/"))]


def _add_entries(found: dict[str, TreeEntry], more: Iterable[TreeEntry]) -> None:
    for entry in more:
        if entry.path in found:
            raise DataError(f"{entry.path!r} is described twice; remove one of the two")
        found[entry.path] = entry


def parse_description(text: str, name: str) -> Iterator[TreeEntry]:
    """The entries of one description. ``name`` is used in messages.

    Raises DataError with the line for a head that cannot be read, or content that has none.
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
        kind: EntryKind = "dir" if path.endswith("/") else "file"
        return TreeEntry(kind, path.rstrip("/"), int(mode, 8), mtime)
    except ValueError as e:
        raise DataError(f"{where}: {line!r} is not '@ MODE|link TIME /path' ({e})") from e


def tree_digest(found: Sequence[TreeEntry] | None = None) -> str:
    """First 16 hex digits of a SHA-256 over every path, kind, mode, time and content, those of
    ``found`` or of this tree."""
    rows = [
        [e.kind, e.path, e.mode, e.mtime, hashlib.sha256(e.data).hexdigest(), e.target]
        for e in (entries() if found is None else found)
    ]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]


def write_tree(dest: Path, found: Sequence[TreeEntry] | None = None) -> None:
    """Write this tree, or ``found`` (parents before children), below ``dest``, which is made if
    absent.

    Bytes, modes and modification times do not depend on the machine, the umask or the day; owners
    are the caller's. Raises OSError where something cannot be written.
    """
    dest.mkdir(parents=True, exist_ok=True)
    everything = entries() if found is None else found
    for entry in everything:
        path = dest / entry.path.lstrip("/")
        if entry.kind == "dir":
            path.mkdir()
        elif entry.kind == "link":
            path.symlink_to(entry.target)
        else:
            path.write_bytes(entry.data)
    for entry in reversed(everything):  # children first: writing into a directory changes its time
        path = dest / entry.path.lstrip("/")
        if entry.kind != "link":
            path.chmod(entry.mode)
        os.utime(path, (entry.mtime, entry.mtime), follow_symlinks=False)
    dest.chmod(0o755)
    os.utime(dest, (EPOCH, EPOCH))
