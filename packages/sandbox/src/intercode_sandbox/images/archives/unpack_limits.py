"""Limits on the size of unpacked archives."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from intercode_sandbox.errors import ConfigError, DataError

LIMIT_VARIABLE = "INTERCODE_IMAGE_LIMIT"
DEFAULT_BYTES = 64 << 30
MAX_ENTRIES = 4_000_000
"""Limit on the files, directories and links of one image."""

_SIZE = re.compile(r"(\d{1,9})\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_DISK_RESERVE = 64 << 20
"""Bytes of the disk that must stay free."""


@dataclass(slots=True)
class UnpackLimits:
    """The remaining allowance: ``size`` bytes and ``entries`` entries. ``reason`` and
    ``entries_reason`` explain the limits in messages."""

    size: int
    entries: int = MAX_ENTRIES
    reason: str = ""
    entries_reason: str = "that is not an image"
    _most: int = field(init=False)

    def __post_init__(self) -> None:
        self._most = self.entries

    @classmethod
    def for_directory(cls, root: Path) -> UnpackLimits:
        """Return the limits for a tree below ``root``: ``INTERCODE_IMAGE_LIMIT`` (default 64 GiB),
        or the free space of the disk if that is less. Raises ConfigError for a bad setting.
        """
        limit = image_size_limit()
        disk = os.statvfs(root)
        free = max(disk.f_bavail * disk.f_frsize - _DISK_RESERVE, 0)
        if free < limit:
            return cls(free, reason=f"the disk of {root} has no more free space")
        return cls(limit, reason=f"set {LIMIT_VARIABLE} (such as 200G) if you trust it")

    def count_entry(self, origin: str, size: int = 0) -> None:
        """Count one entry of ``size`` bytes. Raises DataError when a limit is exceeded."""
        if size < 0:
            raise DataError(f"{origin}: an entry has a size of {size} bytes; fetch it again")
        self.size -= size
        self.entries -= 1
        if self.size < 0:
            raise DataError(f"{origin} unpacks to more bytes than may be written: {self.reason}")
        if self.entries < 0:
            self.refuse_entries(origin)

    def refuse_entries(self, origin: str) -> NoReturn:
        """Raise the DataError for too many entries."""
        raise DataError(f"{origin} holds more than {self._most} entries: {self.entries_reason}")


def image_size_limit() -> int:
    """Return the size limit of unpacked images in bytes. Raises ConfigError for a bad setting."""
    text = os.environ.get(LIMIT_VARIABLE)
    if not text:
        return DEFAULT_BYTES
    found = _SIZE.fullmatch(text.strip())
    if not found:
        raise ConfigError(f"{LIMIT_VARIABLE}={text!r} is not a size; write bytes or such as 20G")
    return int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[found[2].upper()]
