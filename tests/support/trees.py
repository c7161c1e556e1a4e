"""Trees that are hard to handle."""

from __future__ import annotations

import os
from pathlib import Path


def deep(top: Path, levels: int) -> None:
    """Make nested directories below ``top``, with a file in the last."""
    at = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("aaa", dir_fd=at)
        inner = os.open("aaa", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(os.open("last", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)
