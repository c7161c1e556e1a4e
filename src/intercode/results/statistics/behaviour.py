"""How an agent goes about a task: looking before acting, repeating itself, its errors.

Definitions: docs/statistics.md. Shares lie in 0..100.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from intercode.core.types import SUCCESS, Step, Trajectory
from intercode.results.statistics.error_classes import error_class
from intercode.results.statistics.exploration import only_looks
from intercode.results.statistics.figures import Figure, share
from intercode.results.statistics.intervals import Cluster, Estimate, proportion
from intercode.results.statistics.samples import by_task, samples, turns_of

Episodes = Sequence[Trajectory]
PERSON = "person"


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """How many turns met an error of a class, and in how many episodes."""

    name: str
    turns: int
    episodes: int


def behaviour(episodes: Episodes) -> list[Figure]:
    """Every figure of behaviour, those of turns with intervals clustered by task."""
    played = samples(episodes)
    known = any(step.valid is not None for t in played for step in t.steps)
    out = [
        Figure("actions that explore", "%", of_actions(played, explores)),
        Figure("actions that explore, before the first that acts", "%", of_actions(played, before)),
        Figure("episodes that begin with exploring", "%", share(_acting(played), _begins)),
        Figure("repeated actions", "%", of_actions(played, repeats)),
        Figure("turns without code", "%", of_turns(played, _without_code)),
        Figure("refused turns", "%", of_turns(played, lambda _, s: s.refused)),
        Figure("turns by a person", "%", of_turns(played, lambda _, s: s.actor == PERSON)),
    ]
    if known:
        timed = of_turns(played, lambda _, s: s.timed_out)
        out.append(Figure("turns that timed out", "%", timed))
    return out


def error_classes(episodes: Episodes) -> list[ErrorCount]:
    """The classes of errors that turns met, the most frequent first, then by name."""
    turns: dict[str, int] = {}
    where: dict[str, int] = {}
    for episode in samples(episodes):
        names = [name for step in turns_of(episode) if (name := class_of(episode, step))]
        for name in names:
            turns[name] = turns.get(name, 0) + 1
        for name in set(names):
            where[name] = where.get(name, 0) + 1
    order = sorted(turns, key=lambda name: (-turns[name], name))
    return [ErrorCount(name, turns[name], where[name]) for name in order]


def class_of(episode: Trajectory, step: Step) -> str | None:
    """The class of a turn's error in its episode's environment; None for none."""
    return error_class(step, environment_of(episode))


def environment_of(episode: Trajectory) -> str:
    """The environment in which an episode was played; empty where it is not recorded."""
    return str(episode.run.get("environment") or "")


def actions_of(episode: Trajectory) -> list[Step]:
    """The turns that ran code: no submitting, nothing refused, nothing without code."""
    return [step for step in turns_of(episode) if _is_action(step)]


def explores(episode: Trajectory) -> list[bool]:
    """Of each action, whether it explores: it only looks, and did not solve the task."""
    where = environment_of(episode)
    return [_explores(step, where) for step in actions_of(episode)]


def before(episode: Trajectory) -> list[bool]:
    """Of each action, whether it explores and no action before it acted."""
    out, acted = [], False
    for looks in explores(episode):
        acted = acted or not looks
        out.append(not acted)
    return out


def repeats(episode: Trajectory) -> list[bool]:
    """Of each action, whether the same episode has had it before, but for blanks around it."""
    seen: set[str] = set()
    out = []
    for step in actions_of(episode):
        text = step.action.strip()
        out.append(text in seen)
        seen.add(text)
    return out


def of_actions(episodes: Episodes, of: Callable[[Trajectory], list[bool]]) -> Estimate | None:
    """The share of actions, over all episodes, of which something is true."""
    return _pooled([(t, of(t)) for t in samples(episodes)])


def of_turns(episodes: Episodes, of: Callable[[Trajectory, Step], bool]) -> Estimate | None:
    """The share of turns, over all episodes, of which something is true."""
    return _pooled([(t, [of(t, step) for step in turns_of(t)]) for t in samples(episodes)])


def _pooled(found: Sequence[tuple[Trajectory, list[bool]]]) -> Estimate | None:
    flags = {id(t): values for t, values in found}
    clusters = [
        Cluster(sum(map(sum, mine)), sum(map(len, mine)))
        for same in by_task(t for t, _ in found).values()
        if (mine := [flags[id(t)] for t in same])
    ]
    estimate = proportion(clusters)
    return None if estimate is None else estimate.times(100)


def _explores(step: Step, environment: str) -> bool:
    solved = step.reward is not None and step.reward >= SUCCESS
    return not solved and only_looks(step.action, environment)


def _acting(episodes: Episodes) -> list[Trajectory]:
    return [t for t in episodes if actions_of(t)]


def _begins(episode: Trajectory) -> bool:
    return _explores(actions_of(episode)[0], environment_of(episode))


def _without_code(_: Trajectory, step: Step) -> bool:
    return not step.executed and not step.refused


def _is_action(step: Step) -> bool:
    words = step.action.split(None, 1)
    submits = bool(words) and words[0].rstrip(";").lower() == "submit"
    return step.executed and not step.refused and not submits


def labelled(episode: Trajectory) -> Iterator[tuple[Step, tuple[str, ...]]]:
    """Each turn with the words for what it did: ``explores``, ``repeats``, an error's class."""
    flags = zip(explores(episode), repeats(episode), strict=True)
    for step in turns_of(episode):
        looks, again = next(flags) if _is_action(step) else (False, False)
        words = ("explores" if looks else "", "repeats" if again else "")
        yield step, tuple(word for word in (*words, class_of(episode, step) or "") if word)
