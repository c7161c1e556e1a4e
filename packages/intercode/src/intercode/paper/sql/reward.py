"""The SQL reward as the authors' code computes it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from intercode.core.types import Score, State, Task
from intercode.environments.base.row_comparison import common_rows, count_inversions, overlap


def original(_task: Task, agent: State, gold: State) -> Score:
    """Score SQL as the authors' code does.

    This is their ``get_reward`` at c3e46d8. Rows are compared as Python prints them, as multisets.
    If rows are common, τ of the two lists of texts multiplies the IoU, rounded to two decimals
    (NumPy's way). A τ that is not a number leaves the IoU as it is. Two empty results are equal; no
    result scores 0. A gold that failed counts as an empty result.
    """
    return _score_as_texts(agent, gold, ordered=True)


def original_iou(_task: Task, agent: State, gold: State) -> Score:
    """Score SQL as the authors' code did before it compared row order.

    Most of their SQL logs have this score, which lacks τ.
    """
    return _score_as_texts(agent, gold, ordered=False)


def _score_as_texts(agent: State, gold: State, *, ordered: bool) -> Score:
    if agent.rows is None or gold.rows is None:
        return Score(0.0, {"iou": 0.0}, {"fault": "no result to compare"})
    a, g = [str(row) for row in agent.rows], [str(row) for row in gold.rows]
    iou, common = overlap(a, g)
    parts = {"iou": iou}
    value = iou
    if ordered and common:
        tau = tau_b(common_rows(a, common), common_rows(g, common))
        if not math.isnan(tau):
            parts["tau"] = tau
            value = round(tau * iou * 100) / 100
    return Score(value, parts)


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


def _count_tied_pairs(values: Iterable[Hashable]) -> int:
    """Return the number of equal pairs."""
    return sum(n * (n - 1) // 2 for n in Counter(values).values())
