"""Compares rows: the values that are equal, the rows that two results have in common, and their
order."""

from __future__ import annotations

import datetime
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from decimal import Decimal
from typing import Any

from intercode.core.types import Rows

NormalRow = Sequence[Hashable]
_SIGNIFICANT_DIGITS = 10
"""Significant digits in which numbers that are not whole have to agree."""


def normalize_rows(rows: Rows) -> list[tuple[Hashable, ...]]:
    """Return rows with their values in one form, so that equal values compare equal."""
    return [tuple(map(_normalize_value, row)) for row in rows]


def _normalize_value(value: Any) -> Hashable:
    """Return a value's kind and the value in one form."""
    if isinstance(value, bool | int | float | Decimal):
        return "number", _normalize_number(value)
    if isinstance(value, bytes | bytearray):
        return "text", bytes(value).decode("utf-8", "surrogateescape")
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return "date", value.date().isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return "date", value.isoformat()
    if isinstance(value, set | frozenset):  # a driver returns these for MySQL's type SET
        return "text", ",".join(sorted(map(str, value)))
    return ("null", None) if value is None else ("text", str(value))


def _normalize_number(value: bool | int | float | Decimal) -> int | float:
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Decimal):
        return (
            int(value)
            if value.is_finite() and value == int(value)
            else _round_significant(float(value))
        )
    return int(value) if value.is_integer() else _round_significant(value)


def _round_significant(value: float) -> float:
    rounded = float(f"{value:.{_SIGNIFICANT_DIGITS}g}")
    return int(rounded) if rounded.is_integer() else rounded


def overlap(a: Sequence[Hashable], g: Sequence[Hashable]) -> tuple[float, Counter[Hashable]]:
    """Return the intersection over union of two multisets (1 if both are empty), and the
    intersection."""
    common = Counter(a) & Counter(g)
    shared = common.total()
    union = len(a) + len(g) - shared
    return (shared / union if union else 1.0), common


def common_rows(rows: Iterable[Any], common: Counter[Hashable]) -> list[Any]:
    """Return the first rows of each kind, as many as are common, in their order."""
    left = Counter(common)
    out = []
    for row in rows:
        if left[row] > 0:
            left[row] -= 1
            out.append(row)
    return out


def rank_correlation(
    a: Sequence[Hashable],
    g: Sequence[Hashable],
    ranks: Sequence[int],
    common: Counter[Hashable],
) -> float:
    """Return τ of the common rows in the agent's order against the gold's ranks.

    Equal rows are paired in their order, which is the pairing with the best score.
    """
    if not common:
        return 1.0
    ranks_by_row: dict[Hashable, list[int]] = {}
    for row, rank in zip(g, ranks, strict=True):
        ranks_by_row.setdefault(row, []).append(rank)
    queues = {row: iter(found) for row, found in ranks_by_row.items()}
    order = [next(queues[row]) for row in common_rows(a, common)]
    ties = sum(n * (n - 1) // 2 for n in Counter(order).values())
    pairs = len(order) * (len(order) - 1) // 2 - ties
    return 1.0 if not pairs else 1.0 - 2.0 * count_inversions(order) / pairs


def count_inversions(values: Iterable[str | int]) -> int:
    """Return the number of pairs in falling order. Equal values do not count."""
    seen: list[str | int] = []
    count = 0
    for value in values:
        count += len(seen) - bisect_right(seen, value)
        insort(seen, value)
    return count
