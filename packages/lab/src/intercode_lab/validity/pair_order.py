"""How often rewards have the order in which a person puts the trajectories of a task."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from intercode.results.statistics.intervals import Estimate, clusters_by_task, estimate_proportion
from intercode.results.tables import Table
from intercode_lab.labels.records import CORRECT, INCORRECT
from intercode_lab.validity.grading import GradedLabel

PROGRESS = "progress"
"""The field of a label that is not correct: how far the trajectory came, from 0 to 1."""
RIGHT_ABOVE_WRONG, MORE_ABOVE_LESS = "right above wrong", "more progress above less"


@dataclass(frozen=True, slots=True)
class OrderRate:
    """A share of pairs of trajectories of one task: ``hits`` of ``of`` are in order."""

    name: str
    hits: int
    of: int
    share: Estimate | None


def order_rates(graded: Iterable[GradedLabel]) -> list[OrderRate]:
    """Return the share of pairs in which what a person calls better has the higher reward.

    A correct trajectory is better than an incorrect one of the same task. Of two that are not
    correct, the one with more ``progress`` is better. Equal rewards are not in order. A kind of
    pair that does not occur is left out.
    """
    tasks: dict[tuple[str, str], list[GradedLabel]] = defaultdict(list)
    for g in graded:
        if g.reward is not None:
            tasks[g.dataset, g.label.task].append(g)
    pairs: dict[str, list[tuple[str, bool]]] = {RIGHT_ABOVE_WRONG: [], MORE_ABOVE_LESS: []}
    for members in tasks.values():
        for better, worse in permutations(members, 2):
            kind = _kind_of_pair(better, worse)
            if kind is not None:
                assert better.reward is not None and worse.reward is not None
                pairs[kind].append((better.label.task, better.reward > worse.reward))
    return _rates(pairs)


def _kind_of_pair(better: GradedLabel, worse: GradedLabel) -> str | None:
    """Return what makes the first better than the second, None if nothing does."""
    if better.label.value == CORRECT:
        return RIGHT_ABOVE_WRONG if worse.label.value == INCORRECT else None
    more, less = _progress(better), _progress(worse)
    if worse.label.value == CORRECT or more is None or less is None:
        return None
    return MORE_ABOVE_LESS if more > less else None


def _progress(graded: GradedLabel) -> float | None:
    value = graded.label.extra.get(PROGRESS)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _rates(pairs: Mapping[str, Sequence[tuple[str, bool]]]) -> list[OrderRate]:
    kinds = {name: list(found) for name, found in pairs.items() if found}
    if len(kinds) > 1:
        kinds["all"] = [pair for found in kinds.values() for pair in found]
    return [
        OrderRate(
            name,
            sum(hit for _, hit in found),
            len(found),
            estimate_proportion(clusters_by_task(found)),
        )
        for name, found in kinds.items()
    ]


def order_table(rates: Sequence[OrderRate]) -> Table:
    """Return the table of the pairs in order."""
    rows = []
    for rate in rates:
        scaled = None if rate.share is None else rate.share.scaled(100)
        interval = (None,) * 3 if scaled is None else (scaled.value, scaled.low, scaled.high)
        rows.append((rate.name, rate.hits, rate.of, *interval))
    return Table(
        "order",
        "Rewards in the order of the labels",
        ("pairs of a task", "in order", "of", "percent", "low", "high"),
        tuple(rows),
        ("equal rewards are not in order",),
        (),
        (("percent", "low", "high"),),
    )
