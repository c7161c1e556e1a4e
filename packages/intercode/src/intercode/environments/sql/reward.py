"""The paper's SQL reward, as the paper meant it.

Paper (arXiv 2306.14898, section 3.2): IoU · (τ + 1) / 2, where IoU is the intersection of the
agent's and the gold's rows over their union, and Kendall's τ compares the order of the rows that
both have.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import combinations, pairwise
from typing import Any

from intercode.core.types import Rows, Score, State, Task
from intercode.environments.base.progress.partial import partial_credit, retained_share
from intercode.environments.base.row_comparison import (
    NormalRow,
    normalize_rows,
    overlap,
    rank_correlation,
)
from intercode.environments.sql.change_progress import ChangeProgress
from intercode.environments.sql.columns import find_columns, fixes_column_order
from intercode.environments.sql.database_changes import Change, Changes
from intercode.environments.sql.result_progress import ResultProgress

_QUOTIENT_DIGITS = 4
"""Digits after the point that MySQL gives a quotient or an average of whole numbers."""


def standard(task: Task, agent: State, gold: State) -> Score:
    """Return 1 if the rows, or the changes of the database, are those of the gold, else how far the
    agent came.

    Numbers are equal when they are the same number, whatever their type (to ten significant digits
    if they are not whole; to four digits after the point if MySQL has rounded one result so and the
    other not). Texts, dates and NULL equal their own kind only. Order counts only if
    the gold asks for one (``State.ranks``), and then only between rows of different rank: τ =
    (pairs in order - pairs out of order) / (pairs), 1 if there is no such pair.

    The columns may come in another order if the rows then are the gold's, unless the query fixes
    their order (see columns.py). ``details["columns"]`` says which columns were compared. A task
    may accept what the gold sorts, groups or filters by as further columns (further_columns.py).

    If the gold changes the database, the rows that it adds and removes are compared instead of the
    result. Below 1, doing nothing earns 0, and so does a database that is farther from the gold's
    than the initial one. The page Partial credit describes the parts.
    """
    return _score(task, agent, gold, extra=False)


def lenient(task: Task, agent: State, gold: State) -> Score:
    """Return what ``standard`` returns, but accept further columns.

    The rows of the chosen columns must be the gold's, as a multiset, and their order counts as in
    ``standard``. There may be three further columns for each row of the gold.
    """
    return _score(task, agent, gold, extra=True)


def _score(task: Task, agent: State, gold: State, *, extra: bool) -> Score:
    if gold.changes is not None:
        return _score_changes(agent.changes or (), gold.changes)
    if agent.rows is None or gold.rows is None:
        return Score(0.0, {"iou": 0.0}, {"fault": "no result to compare"})
    score = _score_rows(task, agent.rows, gold, extra=extra)
    if score.success:
        return score
    progress = ResultProgress(agent.rows, gold.rows, gold.ranks)
    destroyed = ChangeProgress(agent.changes or (), ()).destroyed
    value = partial_credit(progress.share, right=progress.is_other_form)
    details = {**score.details, "other_form": progress.is_other_form, "destroyed": destroyed}
    return Score(round(value * retained_share(destroyed), 12), progress.parts, details)


def _score_changes(agent: Changes, gold: Changes) -> Score:
    details: dict[str, Any] = {"rows": len(agent), "gold_rows": len(gold)}
    if {_exact(c) for c in agent} == {_exact(c) for c in gold}:
        return Score(1.0, {"changes": 1.0}, details)
    progress = ChangeProgress(agent, gold)
    details["destroyed"] = progress.destroyed
    value = partial_credit(progress.share) * retained_share(progress.destroyed)
    return Score(round(value, 12), {"changes": max(progress.share, -1.0)}, details)


def _exact(change: Change) -> tuple[str, str, str, int]:
    return change.table, change.kind, repr(change.values), change.times


def _score_rows(task: Task, rows: Rows, gold: State, *, extra: bool) -> Score:
    """Return the paper's formula on typed values."""
    assert gold.rows is not None
    if rows is gold.rows and _is_sorted(gold.ranks or ()):
        return _full_score(len(gold.rows))
    best = _best_score(task, rows, gold, extra=extra)
    if not best.success and (_is_rounded(rows, gold.rows) or _is_rounded(gold.rows, rows)):
        rounded = replace(gold, rows=_round_fractions(gold.rows))
        score = _best_score(task, _round_fractions(rows), rounded, extra=extra)
        best = max(best, score, key=lambda found: found.value)
    return best


def _best_score(task: Task, rows: Rows, gold: State, *, extra: bool) -> Score:
    """Return the score of rows with the columns in their order, or in a better one."""
    a, g = normalize_rows(rows), normalize_rows(gold.rows or ())
    best = _compare_rows(a, g, gold.ranks)
    if best.success or fixes_column_order(task.query):
        return best
    candidates: list[Sequence[NormalRow]] = [g, *_with_further_columns(a, g, gold)]
    for wider in candidates:
        for columns in find_columns(a, wider, extra=extra):
            chosen = [tuple(row[n] for n in columns) for row in a]
            score = _compare_rows(chosen, wider, gold.ranks)
            if score.value > best.value:
                best = replace(score, details={**score.details, "columns": columns})
            if best.success:
                return best
    return best


def _with_further_columns(
    a: Sequence[NormalRow], g: Sequence[NormalRow], gold: State
) -> Iterator[list[NormalRow]]:
    """Yield the gold's rows with as many of the columns that may stand beside them as the agent's
    rows have."""
    surplus = len(a[0]) - len(g[0]) if a and g else 0
    if 0 < surplus <= len(gold.further):
        columns = [
            [value for (value,) in normalize_rows(tuple((v,) for v in c))] for c in gold.further
        ]
        for chosen in combinations(columns, surplus):
            yield [(*row, *more) for row, *more in zip(g, *chosen, strict=True)]


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
    iou, common = overlap(a, g)
    tau = 1.0 if ranks is None else rank_correlation(a, g, ranks, common)
    details = {"rows": len(a), "gold_rows": len(g), "common": sum(common.values())}
    return Score(round(iou * (tau + 1) / 2, 12), {"iou": iou, "tau": tau}, details)


def _is_sorted(ranks: Sequence[int]) -> bool:
    return all(a <= b for a, b in pairwise(ranks))


def _full_score(count: int) -> Score:
    """Return the score of a result compared with itself, in the order asked for."""
    details = {"rows": count, "gold_rows": count, "common": count}
    return Score(1.0, {"iou": 1.0, "tau": 1.0}, details)
