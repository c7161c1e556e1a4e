"""How an agent goes about a task: looking before acting, repeating itself, its errors.

Definitions: docs/statistics.md. Shares lie in 0..100.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from intercode.core.types import SUCCESS_THRESHOLD, Step, Trajectory
from intercode.results.statistics.error_classes import error_class
from intercode.results.statistics.exploration import is_exploration
from intercode.results.statistics.figures import Figure, share_figure
from intercode.results.statistics.intervals import Cluster, Estimate, estimate_proportion
from intercode.results.statistics.samples import agent_turns, by_task, independent_episodes

Episodes = Sequence[Trajectory]
HUMAN_ACTOR = "human"


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """How many turns met an error of a class, and in how many episodes."""

    name: str
    turns: int
    episodes: int


def behaviour_figures(episodes: Episodes) -> list[Figure]:
    """Every figure of behaviour, those of turns with intervals clustered by task."""
    played = independent_episodes(episodes)
    known = any(step.valid is not None for t in played for step in t.steps)
    out = [
        Figure("actions that explore", "%", share_of_actions(played, exploration_flags)),
        Figure(
            "actions that explore, before the first that acts",
            "%",
            share_of_actions(played, leading_exploration_flags),
        ),
        Figure(
            "episodes that begin with exploring",
            "%",
            share_figure(_with_actions(played), _starts_with_exploration),
        ),
        Figure("repeated actions", "%", share_of_actions(played, repetition_flags)),
        Figure("turns without code", "%", share_of_turns(played, _has_no_code)),
        Figure("refused turns", "%", share_of_turns(played, lambda _, s: s.refused)),
        Figure(
            "turns by a person", "%", share_of_turns(played, lambda _, s: s.actor == HUMAN_ACTOR)
        ),
    ]
    if known:
        timed = share_of_turns(played, lambda _, s: s.timed_out)
        out.append(Figure("turns that timed out", "%", timed))
    return out


def count_error_classes(episodes: Episodes) -> list[ErrorCount]:
    """The classes of errors that turns met, the most frequent first, then by name."""
    turns: dict[str, int] = {}
    where: dict[str, int] = {}
    for episode in independent_episodes(episodes):
        names = [name for step in agent_turns(episode) if (name := step_error_class(episode, step))]
        for name in names:
            turns[name] = turns.get(name, 0) + 1
        for name in set(names):
            where[name] = where.get(name, 0) + 1
    order = sorted(turns, key=lambda name: (-turns[name], name))
    return [ErrorCount(name, turns[name], where[name]) for name in order]


def step_error_class(episode: Trajectory, step: Step) -> str | None:
    """The class of a turn's error in its episode's environment; None for none."""
    return error_class(step, environment_of(episode))


def environment_of(episode: Trajectory) -> str:
    """The environment in which an episode was played; empty where it is not recorded."""
    return str(episode.run.get("environment") or "")


def executed_actions(episode: Trajectory) -> list[Step]:
    """The turns that ran code: no submitting, nothing refused, nothing without code."""
    return [step for step in agent_turns(episode) if _is_action(step)]


def exploration_flags(episode: Trajectory) -> list[bool]:
    """Of each action, whether it explores: it only looks, and did not solve the task."""
    where = environment_of(episode)
    return [_is_exploration(step, where) for step in executed_actions(episode)]


def leading_exploration_flags(episode: Trajectory) -> list[bool]:
    """Of each action, whether it explores and no action before it acted."""
    out, acted = [], False
    for looks in exploration_flags(episode):
        acted = acted or not looks
        out.append(not acted)
    return out


def repetition_flags(episode: Trajectory) -> list[bool]:
    """Of each action, whether the same episode has had it before, but for blanks around it."""
    seen: set[str] = set()
    out = []
    for step in executed_actions(episode):
        text = step.action.strip()
        out.append(text in seen)
        seen.add(text)
    return out


def share_of_actions(episodes: Episodes, of: Callable[[Trajectory], list[bool]]) -> Estimate | None:
    """The share of actions, over all episodes, of which something is true."""
    return _pooled_share([(t, of(t)) for t in independent_episodes(episodes)])


def share_of_turns(episodes: Episodes, of: Callable[[Trajectory, Step], bool]) -> Estimate | None:
    """The share of turns, over all episodes, of which something is true."""
    return _pooled_share(
        [(t, [of(t, step) for step in agent_turns(t)]) for t in independent_episodes(episodes)]
    )


def _pooled_share(found: Sequence[tuple[Trajectory, list[bool]]]) -> Estimate | None:
    flags = {id(t): values for t, values in found}
    clusters = [
        Cluster(sum(map(sum, mine)), sum(map(len, mine)))
        for same in by_task(t for t, _ in found).values()
        if (mine := [flags[id(t)] for t in same])
    ]
    estimate = estimate_proportion(clusters)
    return None if estimate is None else estimate.scaled(100)


def _is_exploration(step: Step, environment: str) -> bool:
    solved = step.reward is not None and step.reward >= SUCCESS_THRESHOLD
    return not solved and is_exploration(step.action, environment)


def _with_actions(episodes: Episodes) -> list[Trajectory]:
    return [t for t in episodes if executed_actions(t)]


def _starts_with_exploration(episode: Trajectory) -> bool:
    return _is_exploration(executed_actions(episode)[0], environment_of(episode))


def _has_no_code(_: Trajectory, step: Step) -> bool:
    return not step.executed and not step.refused


def _is_action(step: Step) -> bool:
    words = step.action.split(None, 1)
    submits = bool(words) and words[0].rstrip(";").lower() == "submit"
    return step.executed and not step.refused and not submits


def labelled_turns(episode: Trajectory) -> Iterator[tuple[Step, tuple[str, ...]]]:
    """Each turn with the words for what it did: ``explores``, ``repeats``, an error's class."""
    flags = zip(exploration_flags(episode), repetition_flags(episode), strict=True)
    for step in agent_turns(episode):
        looks, again = next(flags) if _is_action(step) else (False, False)
        words = ("explores" if looks else "", "repeats" if again else "")
        yield step, tuple(word for word in (*words, step_error_class(episode, step) or "") if word)
