"""Reads and formats sizes such as ``512m``."""

from __future__ import annotations

import re

from intercode_sandbox.errors import UsageError

_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([kmgt]?)(?:i?b)?", re.ASCII | re.IGNORECASE)
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def parse_size(text: str) -> int:
    """Return the bytes of a size such as ``512m`` or ``1.5 GiB``, in which K is 1024 as in Docker.
    Raises UsageError for another text."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is no size such as 512m or 2g")
    return int(float(found[1]) * (1 << _UNITS[found[2].lower()]))


def format_size(count: int) -> str:
    """Format a number of bytes in the largest unit that divides it: ``1 GiB``."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count and count % (1 << shift) == 0:
            return f"{count >> shift} {unit}"
    return f"{count} bytes"
