"""One path of a described file system."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["file", "dir", "link"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, directory or symbolic link. ``mtime`` is in seconds since 1970, UTC."""

    kind: Kind
    path: str
    mode: int
    mtime: int
    data: bytes = b""
    target: str = ""

    def with_data(self, text: str) -> Entry:
        """The same entry with this content, as UTF-8."""
        return replace(self, data=text.encode())
