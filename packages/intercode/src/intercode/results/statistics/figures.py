"""Figures over episodes with their intervals. Tasks, not episodes, are the independent units.

Shares lie in 0..100, as in metrics.py. A figure is None if it is unknown. Shares of success and the
best score are over all samples: an error of the infrastructure counts as not solved, with score
0. Definitions: docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from intercode.core.types import Trajectory
from intercode.results.statistics import metrics
from intercode.results.statistics.intervals import (
    Estimate,
    clusters_by_task,
    estimate_bootstrap_mean,
    estimate_mean,
    estimate_proportion,
    values_by_task,
)
from intercode.results.statistics.metrics import (
    agent_turns,
    has_validity,
    is_invalid,
    known_usage,
    turn_count,
)
from intercode.results.statistics.samples import (
    all_samples,
    by_task,
    independent_episodes,
    max_epochs,
    solving_turn,
)

Episodes = Sequence[Trajectory]
OptionalEstimate = Estimate | None
HARDNESS = ("easy", "medium", "hard", "extra")


@dataclass(frozen=True, slots=True)
class Figure:
    """A named figure.

    Attributes:
        name: The name, such as ``success``.
        unit: ``%``, ``turns``, ``tokens``, ``s``, ``US dollars`` or so.
        estimate: The value with its interval; None if it is unknown.
    """

    name: str
    unit: str
    estimate: Estimate | None


def success(episodes: Episodes) -> OptionalEstimate:
    """Return the share of all episodes whose best score is 1.

    Args:
        episodes: Records of any number of tasks.

    Returns:
        The share in percent, with its interval; None if there is no episode.
    """
    return _share(all_samples(episodes), metrics.is_solved)


def success_upper_bound(episodes: Episodes) -> OptionalEstimate:
    """Return ``success`` as it would be if every error had been a success.

    Args:
        episodes: Records of any number of tasks.

    Returns:
        The share in percent, with its interval; None if no episode ended in an error.
    """
    samples = all_samples(episodes)
    if not metrics.count_failed(samples):
        return None
    return _share(samples, lambda t: metrics.is_failed(t) or t.success)


def pass_at(episodes: Episodes, k: int) -> OptionalEstimate:
    """Return pass@k: the probability that at least one of k samples of a task succeeds.

    Per task 1 - C(n-c, k)/C(n, k) for c successes in n samples, unbiased (Chen et al. 2021, arXiv
    2107.03374, section 2.1), then the mean over tasks; the interval is from resampling tasks.

    Args:
        episodes: Records of any number of tasks.
        k: The number of samples, at least 1. Tasks with fewer samples are left out.

    Returns:
        The probability in percent, with its interval; None if no task has k samples.
    """
    return _per_task_figure(episodes, k, lambda n, c: 1 - math.comb(n - c, k) / math.comb(n, k))


def pass_all(episodes: Episodes, k: int) -> OptionalEstimate:
    """Return pass^k: the probability that all of k samples of a task succeed.

    Per task C(c, k)/C(n, k), unbiased (Yao et al. 2024, arXiv 2406.12045, section 3), then as
    ``pass_at``.

    Args:
        episodes: Records of any number of tasks.
        k: The number of samples, at least 1. Tasks with fewer samples are left out.

    Returns:
        The probability in percent, with its interval; None if no task has k samples.
    """
    return _per_task_figure(episodes, k, lambda n, c: math.comb(c, k) / math.comb(n, k))


def success_by_turn(episodes: Episodes, turns: int | None = None) -> list[Estimate]:
    """Return the share of episodes solved within 1, 2, ... turns.

    Args:
        episodes: Records of any number of tasks.
        turns: The last number of turns; None: that of the longest episode.

    Returns:
        A share in percent for each number of turns, from 1.
    """
    samples = all_samples(episodes)
    solved = [(t.task, solving_turn(t) if metrics.is_solved(t) else None) for t in samples]
    last = int(max((turn_count(t) for t in samples), default=0)) if turns is None else turns
    estimates = [
        estimate_proportion(
            clusters_by_task([(task, at is not None and at <= turn) for task, at in solved])
        )
        for turn in range(1, last + 1)
    ]
    return [e.scaled(100) for e in estimates if e is not None]


def success_by_restart(episodes: Episodes) -> list[Estimate]:
    """Return the share of episodes solved after at most 0, 1, ... restarts.

    Args:
        episodes: Records of any number of tasks.

    Returns:
        A share in percent for each number of restarts, from 0; empty if no episode has any.
    """
    samples = all_samples(episodes)
    last = max((len(t.restarts) for t in samples), default=0)
    needed = [(t.task, len(t.restarts) if metrics.is_solved(t) else last + 1) for t in samples]
    estimates = [
        estimate_proportion(clusters_by_task([(task, at <= n) for task, at in needed]))
        for n in range(last + 1)
    ]
    return [e.scaled(100) for e in estimates if e is not None and last]


def recovery(episodes: Episodes) -> OptionalEstimate:
    """Return the share of successes among the episodes with an invalid action.

    Args:
        episodes: Records of any number of tasks.

    Returns:
        The share in percent, with its interval; None if there is no such episode.
    """
    return share_figure(
        [t for t in episodes if any(map(is_invalid, agent_turns(t)))], lambda t: t.success
    )


def next_action_valid(episodes: Episodes, *, after_error: bool) -> OptionalEstimate:
    """Return the share of valid turns among those that follow an invalid or a valid one.

    Args:
        episodes: Records of any number of tasks.
        after_error: Whether the turns that follow an invalid one count, or the others.

    Returns:
        The share in percent, with its interval; None if there is no such turn.
    """
    pairs = [
        (episode.task, not is_invalid(after))
        for episode in independent_episodes(episodes)
        for before, after in zip(agent_turns(episode), agent_turns(episode)[1:], strict=False)
        if has_validity(before) and has_validity(after) and is_invalid(before) is after_error
    ]
    return _to_percent(estimate_proportion(clusters_by_task(pairs)))


def error_rate(episodes: Episodes, *, count_missing_code: bool = False) -> OptionalEstimate:
    """Return the mean over episodes of the share of invalid actions.

    Args:
        episodes: Records of any number of tasks.
        count_missing_code: Whether every turn without code counts as invalid
            (metrics.true_error_share), or what was recorded (metrics.error_share).

    Returns:
        The mean in percent, with its interval; None if no action has a known validity.
    """
    of = metrics.true_error_share if count_missing_code else metrics.error_share
    return _to_percent(mean_figure(episodes, of))


def mean_figure(
    episodes: Episodes, value_of: Callable[[Trajectory], float | None]
) -> OptionalEstimate:
    """Return the mean over the completed episodes for which the figure is known.

    Args:
        episodes: Records of any number of tasks.
        value_of: Returns the figure of an episode; None: it is unknown.

    Returns:
        The mean in the unit of the figure, with its interval; None if it is known of no episode.
    """
    return _mean(independent_episodes(episodes), value_of)


def best_reward(episode: Trajectory) -> float:
    """Return the best score of an episode, 0 for an error of the infrastructure.

    Args:
        episode: The record of the episode.
    """
    return 0.0 if metrics.is_failed(episode) else episode.score


def share_figure(episodes: Episodes, predicate: Callable[[Trajectory], bool]) -> OptionalEstimate:
    """Return the share of the completed episodes for which ``predicate`` is true.

    Args:
        episodes: Records of any number of tasks.
        predicate: Is called with each completed episode.

    Returns:
        The share in percent, with its interval; None if there is no completed episode.
    """
    return _share(independent_episodes(episodes), predicate)


BEST_REWARD = "best score"
MEAN_FIGURES: tuple[tuple[str, str, Callable[[Trajectory], float | None]], ...] = (
    ("turns", "turns", turn_count),
    (BEST_REWARD, "score", best_reward),
    ("requests", "requests", lambda t: float(t.usage.requests) if t.usage.requests else None),
    ("prompt tokens", "tokens", lambda t: known_usage(t).prompt_tokens),
    ("completion tokens", "tokens", lambda t: known_usage(t).completion_tokens),
    ("reasoning tokens", "tokens", lambda t: known_usage(t).reasoning_tokens),
    ("cost", "US dollars", lambda t: known_usage(t).cost),
    ("time", "s", lambda t: t.seconds),
)
"""Means over episodes: name, unit, and a function of one episode that returns None for an unknown
value, never zero. All but the best score are over completed episodes."""


def pass_k_values(epochs: int) -> list[int]:
    """Return the k for which pass@k is reported: 2, 4, 8 ... and the number of epochs.

    Args:
        epochs: The largest number of samples of one task. For 1, no k is reported.
    """
    powers = [2**n for n in range(1, epochs.bit_length()) if 2**n < epochs]
    return [*powers, epochs] if epochs > 1 else []


def all_figures(episodes: Episodes) -> list[Figure]:
    """Return every figure of a result set's episodes, unknown ones included.

    Args:
        episodes: The records of the result set.
    """
    samples = all_samples(episodes)
    out = [Figure("success", "%", success(samples))]
    if metrics.count_failed(samples):
        out.append(Figure("success, upper bound", "%", success_upper_bound(samples)))
    for k in pass_k_values(max_epochs(samples)):
        out.append(Figure(f"pass@{k}", "%", pass_at(samples, k)))
        out.append(Figure(f"pass^{k}", "%", pass_all(samples, k)))
    out += [
        Figure("error %", "%", error_rate(samples)),
        Figure("error % true", "%", error_rate(samples, count_missing_code=True)),
        Figure("recovery after an error", "%", recovery(samples)),
        Figure(
            "next action valid, after an error", "%", next_action_valid(samples, after_error=True)
        ),
        Figure(
            "next action valid, after no error", "%", next_action_valid(samples, after_error=False)
        ),
    ]
    completed = independent_episodes(samples)
    if any(t.restarts for t in completed):
        out.append(Figure("restarts", "restarts", _mean(completed, lambda t: len(t.restarts))))
    return out + [
        Figure(name, unit, _mean(samples if name == BEST_REWARD else completed, of))
        for name, unit, of in MEAN_FIGURES
    ]


def subsets(episodes: Episodes) -> Iterable[tuple[str, str, list[Trajectory]]]:
    """Yield episodes by hardness, by group and by tag.

    Args:
        episodes: The records of a result set.

    Yields:
        The criterion (``hardness``, ``group`` or ``tag``), its value, and the episodes with it.
    """
    for by, key in (("hardness", lambda t: t.hardness), ("group", lambda t: t.group)):
        parts = metrics.split_episodes(episodes, key)
        yield from ((by, name, parts[name]) for name in sorted(parts, key=group_rank))
    tags = sorted({tag for t in episodes for tag in t.tags})
    for tag in tags:
        yield "tag", tag, [t for t in episodes if tag in t.tags]


def group_rank(name: str) -> tuple[int, str]:
    """Return the key that sorts groups: hardness from easy to extra, everything else by name.

    Args:
        name: The name of a group or a hardness.
    """
    return (HARDNESS.index(name) if name in HARDNESS else len(HARDNESS), name)


def _per_task_figure(
    episodes: Episodes, k: int, of: Callable[[int, int], float]
) -> OptionalEstimate:
    counts = [
        (len(same), sum(map(metrics.is_solved, same)))
        for same in by_task(all_samples(episodes)).values()
        if len(same) >= k
    ]
    values = [of(n, c) for n, c in counts]
    return _to_percent(estimate_bootstrap_mean(values, samples=sum(n for n, _ in counts)))


_AT_MOST_ONE = (best_reward, metrics.error_share, metrics.true_error_share)
"""Figures of an episode that are at most 1, but for rewards that a user defines otherwise."""


def _mean(samples: Episodes, value_of: Callable[[Trajectory], float | None]) -> OptionalEstimate:
    known = [(t.task, value) for t in samples if (value := value_of(t)) is not None]
    mean = estimate_mean(values_by_task(known))
    values = [value for _, value in known]
    if mean is None or mean.low is None or mean.high is None or min(values) < 0:
        return mean
    high = mean.high
    if value_of in _AT_MOST_ONE and max(values) <= 1:
        high = min(high, 1.0)
    return replace(mean, low=max(mean.low, 0.0), high=high)


def _share(samples: Episodes, predicate: Callable[[Trajectory], bool]) -> OptionalEstimate:
    pairs = [(t.task, predicate(t)) for t in samples]
    return _to_percent(estimate_proportion(clusters_by_task(pairs)))


def _to_percent(estimate: Estimate | None) -> Estimate | None:
    return None if estimate is None else estimate.scaled(100)
