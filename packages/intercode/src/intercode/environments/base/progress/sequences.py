"""Compares sequences of lines or words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence

_MAX_ORDERED = 5000
"""Longer sequences are compared as multisets, since the time is the product of their lengths."""
_TOKENS = re.compile(r"\w+|\W")


def common_length(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """Return the length of the longest common subsequence."""
    positions: dict[Hashable, int] = {}
    for i, item in enumerate(a):
        positions[item] = positions.get(item, 0) | 1 << i
    every = (1 << len(a)) - 1
    row = every  # a zero bit for each item of ``a`` in the subsequence (Hyyrö 2004)
    for item in b:
        matches = row & positions.get(item, 0)
        row = (row + matches | row - matches) & every
    return len(a) - row.bit_count()


def similarity(a: Sequence[Hashable], b: Sequence[Hashable], *, ordered: bool = True) -> float:
    """Return the share of both sequences that they have in common, 1 if both are empty.

    ``ordered``: only items in the same order are common.
    """
    if not a and not b:
        return 1.0
    if ordered and max(len(a), len(b)) <= _MAX_ORDERED:
        common = common_length(a, b)
    else:
        common = (Counter(a) & Counter(b)).total()
    return 2 * common / (len(a) + len(b))


def text_similarity(a: str, b: str) -> float:
    """Return the similarity of two texts by words, signs and blanks, below 1 if they differ."""
    if a == b:
        return 1.0
    return min(similarity(_TOKENS.findall(a), _TOKENS.findall(b)), 0.99)
