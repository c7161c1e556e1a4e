"""Builds the initial files of a drawn task."""

from __future__ import annotations

import calendar
import time
from pathlib import PurePosixPath

from intercode.core.types import TreeEntry

DAY = 24 * 3600
NOW = calendar.timegm((2024, 5, 3, 15, 0, 0))
"""The time at which files are written unless they have another date (seconds since 1970, UTC)."""


def date_of(seconds: int) -> str:
    """Return the date of a time in UTC, such as 2024-05-03."""
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


FOLDER = "/work"
"""The directory in which tasks begin and below which their files are."""


class FileTree:
    """The initial files of a task, below ``top``, which exists already.

    Paths are relative to it. Parents are made. Nothing depends on the machine or the day.
    """

    def __init__(self, top: str = FOLDER) -> None:
        self._top = top
        self._entries: dict[str, TreeEntry] = {}

    def file(self, path: str, content: str | bytes, *, mode: int = 0o644, mtime: int = NOW) -> None:
        """Add or replace a file. Text is encoded as UTF-8."""
        data = content.encode() if isinstance(content, str) else content
        self._add(TreeEntry("file", path, mode, mtime, data))

    def directory(self, path: str, *, mode: int = 0o755, mtime: int = NOW) -> None:
        """Add a directory."""
        self._add(TreeEntry("dir", path, mode, mtime))

    def link(self, path: str, target: str) -> None:
        """Add a symbolic link. ``target`` is relative to the directory of the link."""
        self._add(TreeEntry("link", path, 0o777, NOW, target=target))

    def __contains__(self, path: str) -> bool:
        return path in self._entries

    @property
    def paths(self) -> list[str]:
        """The paths of all files, sorted."""
        return sorted(p for p, entry in self._entries.items() if entry.kind == "file")

    @property
    def entries(self) -> tuple[TreeEntry, ...]:
        """Everything with absolute paths, parents before children."""
        return tuple(
            TreeEntry(e.kind, f"{self._top}/{e.path}", e.mode, e.mtime, e.data, e.target)
            for _, e in sorted(self._entries.items(), key=lambda item: item[0].split("/"))
        )

    def _add(self, entry: TreeEntry) -> None:
        for parent in PurePosixPath(entry.path).parents:
            if str(parent) != ".":
                self._entries.setdefault(str(parent), TreeEntry("dir", str(parent), 0o755, NOW))
        self._entries[entry.path] = entry
