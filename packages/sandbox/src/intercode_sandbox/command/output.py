"""Messages on standard error, and safe text."""

from __future__ import annotations

import re
import sys

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def log(message: str) -> None:
    """Print a message to standard error, in one piece: other threads and processes write there."""
    sys.stderr.write(f"{message}\n")


def escape_control(text: str) -> str:
    """Escape the characters that would control the terminal."""
    text = text.replace("\r\n", "\n")
    return _CONTROL.sub(lambda m: m.group().encode("unicode_escape").decode(), text)
