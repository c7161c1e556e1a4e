"""Figures over episodes as the paper and the authors' analysis define them.

Percentages lie in 0..100. A figure is None without episodes. An episode that ended in an error of
the infrastructure (an endpoint down, a sandbox lost) counts as not solved, so that errors never
raise a rate of success; ``upper_bound`` is the rate if all of them had been solved. The means of
turns and of invalid actions leave it out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

from intercode.core.logs import lacks_code
from intercode.core.types import Step, Trajectory, Usage
from intercode.environments.recorded_descriptions import description_of, stratum_of

Episodes = Sequence[Trajectory]


def is_failed(episode: Trajectory) -> bool:
    """Return whether an episode ended in an error of the infrastructure."""
    return episode.end == "error" or episode.error is not None


def is_solved(episode: Trajectory) -> bool:
    """Return whether an episode counts as solved: its best reward is 1, and it did not end in an
    error of the infrastructure."""
    return episode.success and not is_failed(episode)


def drop_retried_failures(episodes: Iterable[Trajectory]) -> list[Trajectory]:
    """Leave out failed episodes of which another attempt, at the same task and epoch, was
    completed.

    Of several failures of one episode the last is kept.
    """
    all_episodes = list(episodes)
    completed = {(t.task, t.epoch) for t in all_episodes if not is_failed(t)}
    last = {(t.task, t.epoch): n for n, t in enumerate(all_episodes) if is_failed(t)}
    return [
        t
        for n, t in enumerate(all_episodes)
        if not is_failed(t) or ((t.task, t.epoch) not in completed and last[t.task, t.epoch] == n)
    ]


def count_failed(episodes: Episodes) -> int:
    """Return how many episodes ended in an error of the infrastructure."""
    return sum(is_failed(t) for t in episodes)


def count_action_errors(episodes: Episodes) -> int:
    """Return how many episodes ended with an exception that an action caused."""
    return sum(t.end == "action_error" for t in episodes)


def completed_episodes(episodes: Episodes) -> list[Trajectory]:
    """Return the episodes that did not end in an error of the infrastructure."""
    return [t for t in episodes if not is_failed(t)]


def success_rate(episodes: Episodes) -> float | None:
    """Return the share of all episodes whose best reward is 1 and that did not end in an error of
    the infrastructure, in percent."""
    return _percent(map(is_solved, episodes))


def upper_bound(episodes: Episodes) -> float | None:
    """Return ``success_rate`` as it would be if every error had been a success; None without an
    error."""
    if not count_failed(episodes):
        return None
    return _percent(is_failed(t) or t.success for t in episodes)


def first_turn_rate(episodes: Episodes) -> float | None:
    """Return the share of all episodes whose first turn has reward 1, in percent: Single Turn from
    Try Again. An error of the infrastructure counts as in ``success_rate``."""
    return _percent(bool(t.steps) and solves(t.steps[0]) and not is_failed(t) for t in episodes)


def agent_turns(episode: Trajectory) -> tuple[Step, ...]:
    """Return the turns of the agent, without the submission that the authors' ReAct loop adds when
    the turns are used up."""
    steps = episode.steps
    if len(steps) > episode.run.get("turns_taken", len(steps)) and steps[-1].action == "submit":
        return steps[:-1]
    return steps


def earlier_turns(episodes: Episodes) -> list[Step]:
    """Return the executed turns of all episodes after which the episode went on."""
    return [s for t in episodes for s in t.steps[:-1] if s.executed]


def turn_count(episode: Trajectory) -> float:
    """Return how many turns were taken; the authors' logs have their own count."""
    return float(episode.run.get("turns_taken", episode.turns))


def mean_turns(episodes: Episodes) -> float | None:
    """Return the mean number of actions. The authors' logs have their own count
    (``run['turns_taken']``).

    Their count leaves out the submission that ReAct's loop adds when the turns are used up.
    """
    turns = [turn_count(t) for t in completed_episodes(episodes)]
    return fmean(turns) if turns else None


def mean_restarts(episodes: Episodes) -> float | None:
    """Return how often the task was begun again in completed episodes; None if it never was."""
    restarts = [len(t.restarts) for t in completed_episodes(episodes)]
    return fmean(restarts) if any(restarts) else None


def is_invalid(step: Step) -> bool:
    """Return whether a turn's action could not be executed, or held no code. A turn without a
    recorded flag is not invalid."""
    return step.valid is False or lacks_code(step)


def is_submission(step: Step) -> bool:
    """Return whether a step submits the episode to be scored, with or without an answer."""
    return step.action.split(None, 1)[:1] == ["submit"]


def is_refused_answer(step: Step) -> bool:
    """Return whether the environment refused what the agent submitted, such as a wrong flag."""
    return step.refused and is_submission(step)


def is_refused_action(step: Step) -> bool:
    """Return whether a policy refused an action. Policies do not apply to submissions."""
    return step.refused and not is_refused_answer(step)


def is_from_cache(step: Step) -> bool:
    """Return whether the model's answer in a turn came from the cache of completions."""
    return step.usage.requests == 0 and step.usage.prompt_tokens == 0


def known_usage(episode: Trajectory) -> Usage:
    """Return the usage of an episode. Its tokens and its cost are unknown if an answer came from
    the cache: a record has 0 for such an answer, which is what was paid and not what it takes."""
    usage = episode.usage
    if not any(map(is_from_cache, episode.steps)):
        return usage
    return Usage(requests=usage.requests, seconds=usage.seconds)


def has_validity(step: Step) -> bool:
    """Return whether the validity of a turn's action is known."""
    return step.valid is not None or lacks_code(step)


def error_share(episode: Trajectory) -> float | None:
    """Return the share of one episode's actions that are invalid, in 0..1, from the flags as
    recorded.

    A forced submission counts as an action here, as in the authors' analysis. A turn without a flag
    counts as invalid if it held no code, else not at all; None if no turn has a known validity.
    """
    flags = [bool(step.valid) for step in episode.steps if has_validity(step)]
    return flags.count(False) / len(flags) if flags else None


def true_error_share(episode: Trajectory) -> float | None:
    """Return ``error_share`` with every turn without code counted as invalid, without a forced
    submission.

    In the authors' ReAct logs both carry the flag of the turn before.
    """
    flags = [is_invalid(step) for step in agent_turns(episode) if has_validity(step)]
    return flags.count(True) / len(flags) if flags else None


def error_rate(
    episodes: Episodes, share: Callable[[Trajectory], float | None] = error_share
) -> float | None:
    """Return the mean over episodes of the share of invalid actions, in percent."""
    shares = [s for s in map(share, completed_episodes(episodes)) if s is not None]
    return 100.0 * fmean(shares) if shares else None


def split_episodes(
    episodes: Iterable[Trajectory], key: Callable[[Trajectory], str | None]
) -> dict[str, list[Trajectory]]:
    """Return episodes by group, in the order of their first episode, leaving out those with
    None."""
    out: dict[str, list[Trajectory]] = {}
    for episode in episodes:
        name = key(episode)
        if name is not None:
            out.setdefault(name, []).append(episode)
    return out


def group_of(episode: Trajectory) -> str | None:
    """Return what tables are split by: hardness for SQL, else the group (file system)."""
    return stratum_of(episode, description_of(episode.run))


def solves(step: Step) -> bool:
    """Return whether the score after a turn was 1."""
    return step.score is not None and step.score.success


def _percent(values: Iterable[bool]) -> float | None:
    counted = list(values)
    return 100.0 * sum(counted) / len(counted) if counted else None
