"""Figures over episodes with their intervals. Tasks, not episodes, are the independent units.

Shares lie in 0..100 here, as in metrics.py. A figure is None where nothing gives it. What each
means: docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from intercode.core.types import Trajectory
from intercode.results.statistics import metrics
from intercode.results.statistics.intervals import (
    Estimate,
    by_cluster,
    hits,
    mean,
    proportion,
    resampled,
)
from intercode.results.statistics.samples import (
    by_task,
    is_invalid,
    is_judged,
    samples,
    solved_at,
    turn_count,
    turns_of,
)

Episodes = Sequence[Trajectory]
Estimated = Estimate | None
HARDNESS = ("easy", "medium", "hard", "extra")


@dataclass(frozen=True, slots=True)
class Figure:
    """A named figure. ``unit``: ``%``, ``turns``, ``tokens``, US ``cents``, ``s`` ...."""

    name: str
    unit: str
    estimate: Estimate | None


def success(episodes: Episodes) -> Estimated:
    """Share of episodes whose best reward is 1."""
    return share(episodes, lambda t: t.success)


def pass_at(episodes: Episodes, k: int) -> Estimated:
    """pass@k: the chance that at least one of k samples of a task succeeds.

    Per task 1 - C(n-c, k)/C(n, k) for c successes in n samples, unbiased (Chen et al. 2021, arXiv
    2107.03374, section 2.1), then the mean over tasks; the interval from resampling tasks. Tasks
    with fewer than k samples are left out.
    """
    return _per_task(episodes, k, lambda n, c: 1 - math.comb(n - c, k) / math.comb(n, k))


def pass_all(episodes: Episodes, k: int) -> Estimated:
    """pass^k: the chance that all of k samples of a task succeed.

    Per task C(c, k)/C(n, k), unbiased (Yao et al. 2024, arXiv 2406.12045, section 3), then as
    ``pass_at``.
    """
    return _per_task(episodes, k, lambda n, c: math.comb(c, k) / math.comb(n, k))


def success_by_turn(episodes: Episodes, turns: int | None = None) -> list[Estimate]:
    """Share of episodes solved within 1, 2, ... turns, up to ``turns`` (None: the longest)."""
    played = samples(episodes)
    solved = [(t.task, solved_at(t)) for t in played]
    last = int(max((turn_count(t) for t in played), default=0)) if turns is None else turns
    found = [
        proportion(hits([(task, at is not None and at <= turn) for task, at in solved]))
        for turn in range(1, last + 1)
    ]
    return [e.times(100) for e in found if e is not None]


def recovery(episodes: Episodes) -> Estimated:
    """Of the episodes with an invalid action, the share that succeeds nevertheless."""
    return share([t for t in episodes if any(map(is_invalid, turns_of(t)))], lambda t: t.success)


def next_valid(episodes: Episodes, *, after_error: bool) -> Estimated:
    """Of the turns that follow an invalid action (or a valid one), the share that is valid."""
    pairs = [
        (episode.task, not is_invalid(then))
        for episode in samples(episodes)
        for before, then in zip(turns_of(episode), turns_of(episode)[1:], strict=False)
        if is_judged(before) and is_judged(then) and is_invalid(before) is after_error
    ]
    return _percent(proportion(hits(pairs)))


def error_rate(episodes: Episodes, *, true: bool = False) -> Estimated:
    """Mean over episodes of the share of invalid actions: as recorded (metrics.error_share), or
    with every turn that held no code counted as one (``true``; metrics.true_error_share)."""
    of = metrics.true_error_share if true else metrics.error_share
    return _percent(average(episodes, of))


def average(episodes: Episodes, of: Callable[[Trajectory], float | None]) -> Estimated:
    """The mean over those episodes of which the figure is known."""
    known = [(t.task, value) for t in samples(episodes) if (value := of(t)) is not None]
    return mean(by_cluster(known))


def share(episodes: Episodes, of: Callable[[Trajectory], bool]) -> Estimated:
    """The share of episodes of which something is true."""
    return _percent(proportion(hits([(t.task, of(t)) for t in samples(episodes)])))


MEANS: tuple[tuple[str, str, Callable[[Trajectory], float | None]], ...] = (
    ("turns", "turns", turn_count),
    ("best reward", "reward", lambda t: t.reward),
    ("requests", "requests", lambda t: float(t.usage.requests) if t.usage.requests else None),
    ("prompt tokens", "tokens", lambda t: t.usage.prompt_tokens),
    ("completion tokens", "tokens", lambda t: t.usage.completion_tokens),
    ("reasoning tokens", "tokens", lambda t: t.usage.reasoning_tokens),
    ("cost", "cents", lambda t: None if t.usage.cost is None else 100 * t.usage.cost),
    ("time", "s", lambda t: t.seconds),
)
"""Means over episodes: name, unit, and what is read off one; None: unknown, never zero."""


def ks(epochs: int) -> list[int]:
    """The k of pass@k that are worth a line: 2, 4, 8 ... and the number of epochs."""
    powers = [2**n for n in range(1, epochs.bit_length()) if 2**n < epochs]
    return [*powers, epochs] if epochs > 1 else []


def figures(episodes: Episodes) -> list[Figure]:
    """Every figure of one row's episodes, unknown ones too."""
    played = samples(episodes)
    epochs = max((len(same) for same in by_task(played).values()), default=0)
    out = [Figure("success", "%", success(played))]
    for k in ks(epochs):
        out.append(Figure(f"pass@{k}", "%", pass_at(played, k)))
        out.append(Figure(f"pass^{k}", "%", pass_all(played, k)))
    out += [
        Figure("error %", "%", error_rate(played)),
        Figure("error % true", "%", error_rate(played, true=True)),
        Figure("recovery after an error", "%", recovery(played)),
        Figure("next action valid, after an error", "%", next_valid(played, after_error=True)),
        Figure("next action valid, after none", "%", next_valid(played, after_error=False)),
    ]
    return out + [Figure(name, unit, average(played, of)) for name, unit, of in MEANS]


def splits(episodes: Episodes) -> Iterable[tuple[str, str, list[Trajectory]]]:
    """Episodes by hardness, by group and by tag: what by, its value, the episodes."""
    for by, key in (("hardness", lambda t: t.hardness), ("group", lambda t: t.group)):
        for name, some in sorted(metrics.split(episodes, key).items(), key=_rank):
            yield by, name, some
    tags = sorted({tag for t in episodes for tag in t.tags})
    for tag in tags:
        yield "tag", tag, [t for t in episodes if tag in t.tags]


def _rank(part: tuple[str, list[Trajectory]]) -> tuple[int, str]:
    """Hardness from easy to extra, the rest by name."""
    return (HARDNESS.index(part[0]) if part[0] in HARDNESS else len(HARDNESS), part[0])


def _per_task(episodes: Episodes, k: int, of: Callable[[int, int], float]) -> Estimated:
    counts = [(len(same), sum(t.success for t in same)) for same in _enough(episodes, k)]
    values = [of(n, c) for n, c in counts]
    return _percent(resampled(values, samples=sum(n for n, _ in counts)))


def _enough(episodes: Episodes, k: int) -> list[list[Trajectory]]:
    return [same for same in by_task(samples(episodes)).values() if len(same) >= k]


def _percent(estimate: Estimate | None) -> Estimate | None:
    return None if estimate is None else estimate.times(100)
