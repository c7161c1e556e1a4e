"""Finds answers of agents that are equal to a reader, and that the grader scores differently."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from intercode.core.logs import find_logs, load_log
from intercode.core.types import Dataset, Trajectory
from intercode.evaluation.check.findings import TaskFinding
from intercode.results.short_text import shorten
from intercode.results.statistics.metrics import is_submission

_CODE_IS_THE_ANSWER = frozenset({"python", "code"})
"""Environments in which the answer is the code that was written, not what it printed."""
_CONDITIONS = ("profile", "reward", "scoring", "dataset_hash", "image_digest")
_MAX_TEXT = 50  # characters of an answer or an action in a finding
_DIGITS = 2  # of scores that are compared: some logs have no more


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """An answer in an episode, with its score and the action that gave it.

    ``key`` is equal for answers that the same grader should score the same.
    """

    task: str
    key: tuple[object, ...]
    text: str
    action: str
    score: float


def read_episodes(dataset: Dataset, paths: Sequence[Path]) -> list[Trajectory]:
    """Return the episodes of runs and logs that play a task of the dataset with its query.

    Raises UsageError for a path that does not exist or has no logs.
    """
    queries = {task.id: task.query for task in dataset.tasks}
    episodes = (t for path in find_logs(paths) for t in load_log(path))
    return [t for t in episodes if queries.get(t.task) == t.query]


def split_answers(environment: str, episodes: Iterable[Trajectory]) -> list[TaskFinding]:
    """Return a finding for each answer that has different scores."""
    groups: dict[tuple[object, ...], dict[float, ScoredAnswer]] = defaultdict(dict)
    for episode in episodes:
        answer = _final_answer(environment, episode)
        if answer is not None:
            groups[answer.key].setdefault(round(answer.score, _DIGITS), answer)
    found = (sorted(same.items(), reverse=True) for same in groups.values() if len(same) > 1)
    return [_describe(scored) for scored in found]


def _final_answer(environment: str, episode: Trajectory) -> ScoredAnswer | None:
    """Return the answer that an episode ended with, and the last score after it.

    None if it has none, if it shows nothing, or if its answer is a submitted flag.
    """
    done = [s for s in episode.steps if s.executed and s.valid and not is_submission(s)]
    scored = [s.reward for s in episode.steps if s.reward is not None]
    if not done or not scored or episode.error is not None or environment == "ctf":
        return None
    last = done[-1]
    conditions = (str(episode.run.get(name)) for name in _CONDITIONS)
    code = [s.action for s in done] if environment in _CODE_IS_THE_ANSWER else []
    text = last.observation.strip()
    if not (text or last.changes or code):
        return None
    key = (episode.task, episode.seed, *conditions, text, last.changes, *code)
    return ScoredAnswer(episode.task, key, text, last.action, scored[-1])


def _describe(scored: Sequence[tuple[float, ScoredAnswer]]) -> TaskFinding:
    answer = scored[0][1]
    parts = [f"{score:g} after {_quote(a.action)}" for score, a in (scored[0], scored[-1])]
    return TaskFinding(
        answer.task, "split-answers", f"{_quote(answer.text)} scored {' and '.join(parts)}"
    )


def _quote(text: str) -> str:
    text = " | ".join(text.split("\n"))
    return repr(shorten(text, _MAX_TEXT))
