"""Reads sizes such as ``512m``."""

from __future__ import annotations

import re

from intercode.sandbox.errors import UsageError

_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([kmgt]?)(?:i?b)?", re.ASCII | re.IGNORECASE)
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def parse_size(text: str) -> int:
    """Return the bytes of a size such as ``512m`` or ``1.5 GiB``, in which K is 1024 as in Docker.
    Raises UsageError for another text."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is no size such as 512m or 2g")
    return int(float(found[1]) * (1 << _UNITS[found[2].lower()]))
