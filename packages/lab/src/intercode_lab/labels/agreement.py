"""Agreement of two people who labelled the same trajectories: Cohen's kappa."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from intercode.core.errors import UsageError
from intercode.results.statistics.distributions import normal_quantile
from intercode.results.statistics.intervals import LEVEL
from intercode_lab.labels.records import AMBIGUOUS, Label


@dataclass(frozen=True, slots=True)
class Kappa:
    """Cohen's kappa of pairs of values, with its interval.

    ``agreement`` is the share of equal pairs, ``expected`` the share by chance. ``value`` and its
    bounds are None if chance alone gives full agreement, as when all labels are the same.
    """

    pairs: int
    agreement: float
    expected: float
    value: float | None
    low: float | None
    high: float | None


def pair_labels(first: Sequence[Label], second: Sequence[Label]) -> list[tuple[Label, Label]]:
    """Return the labels of the trajectories that are in both, in the order of ``first``.

    A trajectory is a task with its actions. If one is in a file several times, its labels are
    paired in their order. Raises UsageError if no trajectory is in both.
    """
    others: dict[object, list[Label]] = defaultdict(list)
    for label in second:
        others[label.key].append(label)
    pairs = [(a, others[a.key].pop(0)) for a in first if others[a.key]]
    if not pairs:
        raise UsageError(
            f"{first[0].file} and {second[0].file} have no trajectory in common: "
            "two labels belong together if their task and their actions are equal"
        )
    return pairs


def cohen_kappa(pairs: Sequence[tuple[str, str]]) -> Kappa:
    """Return Cohen's kappa (1960, Educational and Psychological Measurement 20) of pairs of values.

    The interval is the large-sample one of that paper: the standard error is
    sqrt(a(1 - a) / n) / (1 - e), where a is the agreement and e the one by chance.
    """
    n = len(pairs)
    agreement = sum(a == b for a, b in pairs) / n
    ours, theirs = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    expected = sum(ours[value] * theirs[value] for value in ours) / n**2
    if expected >= 1:
        return Kappa(n, agreement, expected, None, None, None)
    value = (agreement - expected) / (1 - expected)
    margin = normal_quantile((1 + LEVEL) / 2) * math.sqrt(agreement * (1 - agreement) / n)
    margin /= 1 - expected
    return Kappa(n, agreement, expected, value, max(-1.0, value - margin), min(1.0, value + margin))


def decided_pairs(pairs: Sequence[tuple[Label, Label]]) -> list[tuple[Label, Label]]:
    """Return the pairs that neither person calls ambiguous."""
    return [(a, b) for a, b in pairs if AMBIGUOUS not in (a.value, b.value)]
