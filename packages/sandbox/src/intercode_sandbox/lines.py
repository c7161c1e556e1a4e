"""Splits texts from elsewhere into lines."""

from __future__ import annotations

import re

_END = re.compile(r"\r\n|\n|\r")


def split_lines(text: str) -> list[str]:
    """Return the lines of a text without their ends, which are ``\\n``, ``\\r\\n`` and ``\\r``.

    ``str.splitlines`` also splits at characters that other programs take for a part of a line, such
    as U+0085 and U+2028.
    """
    lines = _END.split(text)
    return lines if lines[-1] else lines[:-1]
