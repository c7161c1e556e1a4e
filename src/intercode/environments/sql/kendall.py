"""Kendall's tau-b of two lists, as SciPy computes it."""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence


def tau_b(x: Sequence[str], y: Sequence[str]) -> float:
    """What ``scipy.stats.kendalltau(x, y).statistic`` gives, to the last bit.

    Pairs of positions count as concordant, discordant or tied (Kendall 1945): tau-b is
    (C - D) / sqrt(pairs not tied in x) / sqrt(pairs not tied in y), kept within -1..1. NaN for
    empty lists and where one side is all equal. Raises ValueError for lists of different lengths.
    """
    if len(x) != len(y):
        raise ValueError(f"tau needs lists of one length, not {len(x)} and {len(y)}")
    pairs = len(x) * (len(x) - 1) // 2
    x_ties, y_ties = _count_tied_pairs(x), _count_tied_pairs(y)
    if not x or pairs in (x_ties, y_ties):
        return math.nan
    if x == y and not x_ties:
        discordant = 0
    else:
        discordant = count_inversions(b for _, b in sorted(zip(x, y, strict=True)))
    balance = pairs - x_ties - y_ties + _count_tied_pairs(zip(x, y, strict=True)) - 2 * discordant
    value = balance / math.sqrt(pairs - x_ties) / math.sqrt(pairs - y_ties)
    return min(1.0, max(-1.0, value))


def count_inversions(values: Iterable[str | int]) -> int:
    """How many pairs stand in falling order. Equal values are no such pair."""
    seen: list[str | int] = []
    count = 0
    for value in values:
        count += len(seen) - bisect_right(seen, value)
        insort(seen, value)
    return count


def _count_tied_pairs(values: Iterable[Hashable]) -> int:
    """How many pairs are equal."""
    return sum(n * (n - 1) // 2 for n in Counter(values).values())
