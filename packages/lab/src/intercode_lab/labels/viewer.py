"""The trajectories that a person labels in the page, without what the grader said of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from intercode.core.errors import UsageError
from intercode.core.types import Step, Trajectory, to_jsonable
from intercode.results.statistics.metrics import is_failed, is_submission
from intercode.results.view.library import Library
from intercode_lab.labels.label_file import LabelFile
from intercode_lab.labels.records import VALUES, Label

MAX_REASON = 20_000
"""Characters that the reason of a label may have."""
_REACT_CODE = re.compile(r"\s*execute\[(.*)\]\s*", re.DOTALL)


class Labelling:
    """Offers the trajectories of a library one by one, and stores what a person says of them.

    A trajectory is a task with its actions: equal ones are offered once. Branches, and episodes
    that failed or executed nothing, are left out. Nothing that is returned depends on rewards,
    except by ``result``. Raises UsageError for a library without trajectories to label.
    """

    def __init__(self, library: Library, labels: LabelFile) -> None:
        self._library, self._labels = library, labels
        self._items: dict[tuple[str, tuple[str, ...]], tuple[int, int]] = {}
        for run, log in enumerate(library.index()["runs"]):
            for at in range(len(log["rows"])):
                episode = library.trajectory(run, at)
                key = (episode.task, _actions(episode))
                if key[1] and not episode.parent and not is_failed(episode):
                    self._items.setdefault(key, (run, at))
        if not self._items:
            raise UsageError("no episode to label: none has executed an action")

    def overview(self) -> dict[str, Any]:
        """Return the tasks in order, each with its label or null."""
        by_key = {label.key: label.value for label in self._labels.labels()}
        items = [{"task": key[0], "label": by_key.get(key)} for key in self._items]
        return {"items": items, "file": self._labels.path.name}

    def item(self, number: int) -> dict[str, Any]:
        """Return a trajectory and its label. Raises UsageError if there is no such number."""
        episode = self._trajectory(number)
        key = (episode.task, _actions(episode))
        stored = next((label for label in self._labels.labels() if label.key == key), None)
        return {
            "task": episode.task,
            "query": episode.query,
            "environment": episode.run.get("environment"),
            "answer": _final_answer(episode),
            "branched_at": None,
            "steps": [to_jsonable(_without_result(step)) for step in episode.steps],
            "label": None if stored is None else stored.value,
            "reason": "" if stored is None else stored.reason,
        }

    def result(self, number: int) -> dict[str, Any]:
        """Return what the grader said: the reward, its parts, and how the episode ended."""
        episode = self._trajectory(number)
        scored = [step for step in episode.steps if step.score is not None]
        return {
            "reward": episode.score,
            "parts": dict(scored[-1].parts) if scored else {},
            "end": episode.end,
        }

    def store(self, number: int, given: Any) -> None:
        """Store a label: a mapping with ``label``, ``reason`` and ``saw_result``.

        Raises UsageError if it is none.
        """
        if not isinstance(given, Mapping) or given.get("label") not in VALUES:
            raise UsageError(f"a label is one of {', '.join(VALUES)}")
        reason = given.get("reason", "")
        if not isinstance(reason, str) or len(reason) > MAX_REASON:
            raise UsageError(f"a reason is a text of at most {MAX_REASON} characters")
        episode = self._trajectory(number)
        last = [step for step in episode.steps if step.executed][-1]
        run = episode.run
        extra = {"saw_result": True} if given.get("saw_result") is True else {}
        self._labels.store(
            Label(
                episode.task,
                episode.query,
                _actions(episode),
                given["label"],
                reason.strip(),
                None if is_submission(last) else last.observation,
                dataset=str(run.get("dataset") or ""),
                extra=extra,
            )
        )

    def _trajectory(self, number: int) -> Trajectory:
        if not 0 <= number < len(self._items):
            raise UsageError(f"no trajectory {number}: there are {len(self._items)}")
        run, at = list(self._items.values())[number]
        return self._library.trajectory(run, at)


def _actions(episode: Trajectory) -> tuple[str, ...]:
    """Return the code that was executed. The authors' logs have some in ``execute[...]``."""
    executed = (step.action for step in episode.steps if step.executed and not step.refused)
    if episode.run.get("source") == "run":
        return tuple(executed)
    matches = ((_REACT_CODE.fullmatch(action), action) for action in executed)
    return tuple(match[1] if match else action for match, action in matches)


def _final_answer(episode: Trajectory) -> str:
    """Return the answer that was submitted, else what the last action printed."""
    executed = [step for step in episode.steps if step.executed]
    submitted = executed[-1].action.strip().partition(" ")[2] if executed else ""
    if executed and is_submission(executed[-1]) and submitted:
        return submitted
    return next((s.observation for s in reversed(executed) if not is_submission(s)), "")


def _without_result(step: Step) -> Step:
    """Return a step without its score, and without what its agent thought and was told."""
    blind = Step(
        step.action,
        step.observation,
        step.executed,
        step.valid,
        step.exit_code,
        step.timed_out,
        changes=step.changes,
        diffs=step.diffs,
        actor=step.actor,
        refused=step.refused,
    )
    if is_submission(step):  # its observation may be the verdict
        return replace(blind, observation="", valid=True, refused=False, exit_code=0)
    return blind
