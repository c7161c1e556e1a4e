"""The paper's SQL reward: as the paper meant it, and as the authors' code computes it.

Paper (arXiv 2306.14898, section 3.2): IoU · (τ + 1) / 2, where IoU is the intersection of the
agent's and the gold's rows over their union, and Kendall's τ compares the order of the rows that
both have.
"""

from __future__ import annotations

import datetime
import math
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

from intercode.core.types import Rows, Score, State, Task
from intercode.environments.sql.columns import find_columns, fixes_column_order

_SIGNIFICANT_DIGITS = 10
"""Significant digits in which numbers that are not whole have to agree."""
_QUOTIENT_DIGITS = 4
"""Digits after the point that MySQL gives a quotient or an average of whole numbers."""


def original(_task: Task, agent: State, gold: State) -> Score:
    """Return what the authors' ``get_reward`` at c3e46d8 computes.

    Rows are compared as Python prints them, as multisets. If rows are common, τ of the two lists
    of texts multiplies the IoU, rounded to two decimals (NumPy's way). A τ that is not a number
    leaves the IoU as it is. Two empty results are equal; no result scores 0. A gold that failed
    counts as an empty result.
    """
    return _score_as_texts(agent, gold, ordered=True)


def original_iou(_task: Task, agent: State, gold: State) -> Score:
    """Return ``original`` as it was before the authors added τ: most of their SQL logs have this
    score."""
    return _score_as_texts(agent, gold, ordered=False)


def _score_as_texts(agent: State, gold: State, *, ordered: bool) -> Score:
    if agent.rows is None or gold.rows is None:
        return Score(0.0, {"iou": 0.0}, {"fault": "no result to compare"})
    a, g = [str(row) for row in agent.rows], [str(row) for row in gold.rows]
    iou, common = _overlap(a, g)
    parts = {"iou": iou}
    value = iou
    if ordered and common:
        tau = tau_b(_common_rows(a, common), _common_rows(g, common))
        if not math.isnan(tau):
            parts["tau"] = tau
            value = round(tau * iou * 100) / 100
    return Score(value, parts)


def standard(task: Task, agent: State, gold: State) -> Score:
    """Return the paper's formula on typed values.

    Numbers are equal when they are the same number, whatever their type (to ten significant digits
    if they are not whole; to four digits after the point if MySQL has rounded one result so and the
    other not). Texts, dates and NULL equal their own kind only. Order counts only if
    the gold asks for one (``State.ranks``), and then only between rows of different rank: τ =
    (pairs in order - pairs out of order) / (pairs), 1 if there is no such pair.

    The columns may come in another order if the rows then are the gold's, unless the query fixes
    their order (see columns.py). ``details["columns"]`` says which columns were compared.
    """
    return _score_rows(task, agent, gold, extra=False)


def lenient(task: Task, agent: State, gold: State) -> Score:
    """Return what ``standard`` returns, but accept further columns.

    The rows of the chosen columns must be the gold's, as a multiset, and their order counts as in
    ``standard``. There may be three further columns for each row of the gold.
    """
    return _score_rows(task, agent, gold, extra=True)


def _score_rows(task: Task, agent: State, gold: State, *, extra: bool) -> Score:
    if agent.rows is None or gold.rows is None:
        return Score(0.0, {"iou": 0.0}, {"fault": "no result to compare"})
    if agent.rows is gold.rows and _is_sorted(gold.ranks or ()):
        return _full_score(len(gold.rows))
    best = _best_score(task, agent.rows, gold, extra=extra)
    if not best.success and (
        _is_rounded(agent.rows, gold.rows) or _is_rounded(gold.rows, agent.rows)
    ):
        rounded = replace(gold, rows=_round_fractions(gold.rows))
        score = _best_score(task, _round_fractions(agent.rows), rounded, extra=extra)
        best = max(best, score, key=lambda found: found.value)
    return best


def _best_score(task: Task, rows: Rows, gold: State, *, extra: bool) -> Score:
    """Return the score of rows with the columns in their order, or in a better one."""
    a, g = normalize_rows(rows), normalize_rows(gold.rows or ())
    best = _compare_rows(a, g, gold.ranks)
    if best.success or fixes_column_order(task.query):
        return best
    for columns in find_columns(a, g, extra=extra):
        chosen = [tuple(row[n] for n in columns) for row in a]
        score = _compare_rows(chosen, g, gold.ranks)
        if score.value > best.value:
            best = replace(score, details={**score.details, "columns": columns})
        if best.success:
            break
    return best


def _is_rounded(rows: Rows, others: Rows) -> bool:
    """Return whether ``rows`` have numbers that MySQL may have rounded, and ``others`` numbers that
    it has not: a quotient of whole numbers has four digits, one of texts has all."""
    decimals = (v for row in rows for v in row if isinstance(v, Decimal) and v.is_finite())
    floats = (v for row in others for v in row if isinstance(v, float))
    return any(v.as_tuple().exponent == -_QUOTIENT_DIGITS for v in decimals) and any(
        not v.is_integer() for v in floats
    )


def _round_fractions(rows: Rows) -> Rows:
    return tuple(
        tuple(
            round(float(v), _QUOTIENT_DIGITS) if isinstance(v, float | Decimal) else v for v in row
        )
        for row in rows
    )


def _compare_rows(
    a: Sequence[Hashable], g: Sequence[Hashable], ranks: Sequence[int] | None
) -> Score:
    iou, common = _overlap(a, g)
    tau = 1.0 if ranks is None else _rank_correlation(a, g, ranks, common)
    details = {"rows": len(a), "gold_rows": len(g), "common": sum(common.values())}
    return Score(round(iou * (tau + 1) / 2, 12), {"iou": iou, "tau": tau}, details)


def _is_sorted(ranks: Sequence[int]) -> bool:
    return all(a <= b for a, b in pairwise(ranks))


def _full_score(count: int) -> Score:
    """Return the score of a result compared with itself, in the order asked for."""
    details = {"rows": count, "gold_rows": count, "common": count}
    return Score(1.0, {"iou": 1.0, "tau": 1.0}, details)


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


def _overlap(a: Sequence[Hashable], g: Sequence[Hashable]) -> tuple[float, Counter[Hashable]]:
    """Return the intersection over union of two multisets (1 if both are empty), and the
    intersection."""
    left, right = Counter(a), Counter(g)
    common, union = left & right, left | right
    return (common.total() / union.total() if union else 1.0), common


def _common_rows(rows: Iterable[Any], common: Counter[Hashable]) -> list[Any]:
    """Return the first rows of each kind, as many as are common, in their order."""
    left = Counter(common)
    out = []
    for row in rows:
        if left[row] > 0:
            left[row] -= 1
            out.append(row)
    return out


def _rank_correlation(
    a: Sequence[Hashable],
    g: Sequence[Hashable],
    ranks: Sequence[int],
    common: Counter[Hashable],
) -> float:
    """Return τ of the common rows in the agent's order against the gold's ranks.

    Equal rows are paired in their order, which is the pairing with the best score.
    """
    ranks_by_row: dict[Hashable, list[int]] = {}
    for row, rank in zip(g, ranks, strict=True):
        ranks_by_row.setdefault(row, []).append(rank)
    queues = {row: iter(found) for row, found in ranks_by_row.items()}
    order = [next(queues[row]) for row in _common_rows(a, common)]
    ties = sum(n * (n - 1) // 2 for n in Counter(order).values())
    pairs = len(order) * (len(order) - 1) // 2 - ties
    return 1.0 if not pairs else 1.0 - 2.0 * count_inversions(order) / pairs


def tau_b(x: Sequence[str], y: Sequence[str]) -> float:
    """Return Kendall's tau-b, equal to ``scipy.stats.kendalltau(x, y).statistic`` to the last bit.

    Pairs of positions count as concordant, discordant or tied (Kendall 1945): tau-b is (C - D) /
    sqrt(pairs not tied in x) / sqrt(pairs not tied in y), clipped to -1..1. NaN for empty lists and
    if all values of one side are equal. Raises ValueError for lists of different lengths.
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
    """Return the number of pairs in falling order. Equal values do not count."""
    seen: list[str | int] = []
    count = 0
    for value in values:
        count += len(seen) - bisect_right(seen, value)
        insort(seen, value)
    return count


def _count_tied_pairs(values: Iterable[Hashable]) -> int:
    """Return the number of equal pairs."""
    return sum(n * (n - 1) // 2 for n in Counter(values).values())
