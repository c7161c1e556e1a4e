"""One path of a described file system."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

EntryKind = Literal["file", "dir", "link"]


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file, directory or symbolic link. ``mtime`` is in seconds since 1970, UTC."""

    kind: EntryKind
    path: str
    mode: int
    mtime: int
    data: bytes = b""
    target: str = ""

    def with_data(self, text: str) -> TreeEntry:
        """The same entry with this content, as UTF-8."""
        return replace(self, data=text.encode())
