"""Shortens texts that are compared, so that what differs between them stays visible."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence

_CONTEXT = 12
"""How many characters are shown before the first difference."""
_GAP = "..."


def shorten_distinct(texts: Sequence[str], length: int) -> list[str]:
    """Return texts shortened to about ``length`` characters. Different texts stay different.

    If they share a long beginning, they are cut there and not at their end. Texts that still look
    alike get a digest.
    """
    if all(len(text) <= length for text in texts):
        return list(texts)
    columns = zip(*texts, strict=False)
    shared = sum(1 for _ in itertools.takewhile(lambda column: len(set(column)) == 1, columns))
    start = shared - _CONTEXT if shared > length // 2 and len(set(texts)) > 1 else 0
    short = [_cut(text, max(start, 0), length) for text in texts]
    originals = {one: {t for t, s in zip(texts, short, strict=True) if s == one} for one in short}
    return [
        f"{one} #{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:6]}"
        if len(originals[one]) > 1
        else one
        for text, one in zip(texts, short, strict=True)
    ]


def cut_end(text: str, length: int) -> str:
    """Return a text cut to ``length`` characters, of which the last marks the cut."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def shorten_lines(lines: Sequence[str], most: int) -> list[str]:
    """Return at most ``most`` lines, half from the beginning and half from the end, with a line for
    those between them."""
    if len(lines) <= most:
        return list(lines)
    end = len(lines) - most // 2
    omitted = f"[... {len(lines) - most} lines left out ...]"
    return [*lines[: most - most // 2], omitted, *lines[end:]]


def join_first(texts: Sequence[str], most: int) -> str:
    """Return at most ``most`` texts in a line, and how many more there are."""
    listed = ", ".join(texts[:most])
    return listed + (f" and {len(texts) - most} more" if len(texts) > most else "")


def shorten_line(text: str, length: int) -> str:
    """Return a text on one line, cut to ``length`` characters."""
    return cut_end(" ".join(text.split()), length)


def _cut(text: str, start: int, length: int) -> str:
    text = f"{_GAP}{text[start:]}" if start else text
    return text if len(text) <= length else f"{text[: length - len(_GAP)]}{_GAP}"
