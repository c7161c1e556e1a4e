"""How an agent works: exploration before action, repetition, and errors.

Definitions: docs/statistics.md. Shares lie in 0..100.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from intercode.core.logs import lacks_code
from intercode.core.types import ActionLanguage, Step, Trajectory
from intercode.environments.languages.errors import OTHER, STATUS_ONLY
from intercode.environments.languages.exploration import is_exploration
from intercode.environments.recorded_descriptions import description_of
from intercode.results.statistics.figures import Figure, share_figure
from intercode.results.statistics.intervals import Cluster, Estimate, estimate_proportion
from intercode.results.statistics.metrics import (
    agent_turns,
    is_refused_action,
    is_refused_answer,
    solves,
)
from intercode.results.statistics.samples import by_task, independent_episodes

Episodes = Sequence[Trajectory]
HUMAN_ACTOR = "human"


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """The number of turns, and of episodes, with an error of a class."""

    name: str
    turns: int
    episodes: int


def behaviour_figures(episodes: Episodes) -> list[Figure]:
    """Return all figures of behaviour; those of turns have intervals clustered by task."""
    episodes = independent_episodes(episodes)
    acting = [t for t in episodes if executed_actions(t)]
    by_person = share_of_turns(episodes, lambda _, s: s.actor == HUMAN_ACTOR)
    figures = {
        "actions that explore": share_of_actions(episodes, exploration_flags),
        "actions that explore, before the first that acts": share_of_actions(
            episodes, leading_exploration_flags
        ),
        "episodes that begin with exploring": share_figure(acting, _starts_with_exploration),
        "repeated actions": share_of_actions(episodes, repetition_flags),
        "turns without code": share_of_turns(episodes, _has_no_code),
        "refused turns": share_of_turns(episodes, lambda _, s: is_refused_action(s)),
        "turns by a person": by_person,
    }
    if any(is_refused_answer(step) for t in episodes for step in t.steps):
        answers = share_of_turns(episodes, lambda _, s: is_refused_answer(s))
        figures["turns with a wrong answer"] = answers
    if any(step.valid is not None for t in episodes for step in t.steps):
        figures["turns that timed out"] = share_of_turns(episodes, lambda _, s: s.timed_out)
    return [Figure(name, "%", estimate) for name, estimate in figures.items()]


def count_error_classes(episodes: Episodes) -> list[ErrorCount]:
    """Return the classes of errors, the most frequent first, then by name."""
    turns: dict[str, int] = {}
    episodes_by_class: dict[str, int] = {}
    for episode in independent_episodes(episodes):
        names = [name for step in agent_turns(episode) if (name := step_error_class(episode, step))]
        for name in names:
            turns[name] = turns.get(name, 0) + 1
        for name in set(names):
            episodes_by_class[name] = episodes_by_class.get(name, 0) + 1
    order = sorted(turns, key=lambda name: (-turns[name], name))
    return [ErrorCount(name, turns[name], episodes_by_class[name]) for name in order]


def step_error_class(episode: Trajectory, step: Step) -> str | None:
    """Return the class of a turn's error in its episode's environment; None without an error."""
    return error_class(step, language_of(episode))


def language_of(episode: Trajectory) -> ActionLanguage:
    """Return the language of an episode's actions."""
    return description_of(episode.run).language


def executed_actions(episode: Trajectory) -> list[Step]:
    """Return the turns that ran code, without submissions, refused turns and turns without code."""
    return [step for step in agent_turns(episode) if _is_action(step)]


def exploration_flags(episode: Trajectory) -> list[bool]:
    """Return for each action whether it explores: it only reads, and did not solve the task."""
    language = language_of(episode)
    return [_is_exploration(step, language) for step in executed_actions(episode)]


def leading_exploration_flags(episode: Trajectory) -> list[bool]:
    """Return for each action whether it and all actions before it explore."""
    out, acted = [], False
    for explores in exploration_flags(episode):
        acted = acted or not explores
        out.append(not acted)
    return out


def repetition_flags(episode: Trajectory) -> list[bool]:
    """Return for each action whether the episode has had it before, ignoring surrounding blanks."""
    seen: set[str] = set()
    out = []
    for step in executed_actions(episode):
        text = step.action.strip()
        out.append(text in seen)
        seen.add(text)
    return out


def share_of_actions(
    episodes: Episodes, flags_of: Callable[[Trajectory], list[bool]]
) -> Estimate | None:
    """Return the share of actions, over all episodes, that ``flags_of`` flags."""
    return _pooled_share([(t, flags_of(t)) for t in independent_episodes(episodes)])


def share_of_turns(
    episodes: Episodes, predicate: Callable[[Trajectory, Step], bool]
) -> Estimate | None:
    """Return the share of turns, over all episodes, for which ``predicate`` is true."""
    return _pooled_share(
        [
            (t, [predicate(t, step) for step in agent_turns(t)])
            for t in independent_episodes(episodes)
        ]
    )


def _pooled_share(flagged: Sequence[tuple[Trajectory, list[bool]]]) -> Estimate | None:
    flags = {id(t): values for t, values in flagged}
    clusters = [
        Cluster(sum(map(sum, task_flags)), sum(map(len, task_flags)))
        for same in by_task(t for t, _ in flagged).values()
        if (task_flags := [flags[id(t)] for t in same])
    ]
    estimate = estimate_proportion(clusters)
    return None if estimate is None else estimate.scaled(100)


def _is_exploration(step: Step, language: ActionLanguage) -> bool:
    return not solves(step) and is_exploration(step.action, language)


def _starts_with_exploration(episode: Trajectory) -> bool:
    return _is_exploration(executed_actions(episode)[0], language_of(episode))


def _has_no_code(_: Trajectory, step: Step) -> bool:
    return not step.executed and not step.refused


def _is_action(step: Step) -> bool:
    words = step.action.split(None, 1)
    submits = bool(words) and words[0].rstrip(";").lower() == "submit"
    return step.executed and not step.refused and not submits


def labelled_turns(episode: Trajectory) -> Iterator[tuple[Step, tuple[str, ...]]]:
    """Yield each turn with labels of what it did: ``explores``, ``repeats``, an error's class."""
    flags = zip(exploration_flags(episode), repetition_flags(episode), strict=True)
    for step in agent_turns(episode):
        explores, repeated = next(flags) if _is_action(step) else (False, False)
        words = ("explores" if explores else "", "repeats" if repeated else "")
        yield step, tuple(word for word in (*words, step_error_class(episode, step) or "") if word)


# Classifies the error of an invalid action.
NO_CODE = "no code"
REFUSED = "refused"
WRONG_ANSWER = "wrong answer"
TIMED_OUT = "time-out"


def error_class(step: Step, language: ActionLanguage) -> str | None:
    """Return the class of a turn's error, or None if there was none or it is unknown.

    A turn without recorded validity counts only if its observation is certainly an error of the
    language. If several classes match, the first in the language's order is returned.
    """
    if step.refused:
        return WRONG_ANSWER if is_refused_answer(step) else REFUSED
    if lacks_code(step):
        return NO_CODE
    if not step.executed:
        return None
    if step.valid is None:
        return language.class_of_error(step.observation, False)
    if step.valid:
        return None
    if step.timed_out:
        return TIMED_OUT
    found = language.class_of_error(step.observation, True)
    return found or (OTHER if step.observation.strip() else STATUS_ONLY)
