"""The runs that a page shows: found, indexed once, and read again when they have grown."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice
from pathlib import Path
from typing import Any

from intercode.core.errors import UsageError
from intercode.core.logs import find_logs, ignored_files
from intercode.core.trajectories import step_to_row
from intercode.core.types import Trajectory, to_jsonable
from intercode.results.compare.comparison import CONDITIONS
from intercode.results.view.log_index import LogIndex, open_log
from intercode.results.view.rows import (
    FIELDS,
    episode_rows,
    own_metadata,
    run_summary,
    solved_by_task,
    success_test,
)

MAX_TESTED_PAIRS = 300
"""Pairs of runs that a single file has tests of."""


class Library:
    """The runs at some paths. May be used by several threads.

    With ``step``, opening it and each ``refresh`` index about so many bytes, of every run some. A
    run whose log is not yet indexed to its end (``pending`` bytes are left) has no figures. A run
    is identified by its position. A run that is added below the same paths while a page is open is
    appended, so that positions stay valid. Raises UsageError for a path without logs.
    """

    def __init__(self, paths: Sequence[Path], step: int | None = None) -> None:
        self._step = step
        self._paths = [Path(p) for p in paths]
        self._lock = threading.Lock()
        self._logs: list[LogIndex] = []
        self._known_paths: set[Path] = set()
        self.refresh()

    def refresh(self) -> None:
        """Find new runs and new episodes."""
        with self._lock:
            for path in find_logs(self._paths):
                if path.resolve() not in self._known_paths:
                    self._known_paths.add(path.resolve())
                    self._logs.append(open_log(path))
            if self._step is None:
                for log in self._logs:
                    log.refresh()
                return
            left, share = self._step, max(1, self._step // max(1, len(self._logs)))
            for log in self._logs:
                left -= log.refresh(share)
            for log in self._logs:
                if log.pending and left > 0:
                    left -= log.refresh(left)

    def state(self) -> dict[str, Any]:
        """Return the version, the number of episodes, and how many bytes of the logs are still to
        be indexed."""
        with self._lock:
            return {
                "version": self._version(),
                "episodes": sum(len(log.entries) for log in self._logs),
                "pending": sum(log.pending for log in self._logs),
            }

    @property
    def problems(self) -> list[str]:
        """What could not be read, with the path of its run or log."""
        with self._lock:
            return [
                problem if str(log.path) in problem else f"{log.path}: {problem}"
                for log in self._logs
                for problem in log.problems
            ] + [f"{path}: left out, because it is no log" for path in ignored_files(self._paths)]

    @property
    def has_episodes(self) -> bool:
        """Whether there is an episode to show."""
        with self._lock:
            return any(log.entries for log in self._logs)

    def _version(self) -> str:
        """Return text that changes with the episodes, and when a log has been indexed."""
        pending = sum(log.pending > 0 for log in self._logs)
        return f"{len(self._logs)}.{sum(log.revision for log in self._logs)}.{pending}"

    def index(self) -> dict[str, Any]:
        """Return the data of the page's lists: runs, each with its metadata, figures and rows."""
        with self._lock:
            names = _shortest_names([log.path for log in self._logs])
            runs = [_run_index(log, name) for log, name in zip(self._logs, names, strict=True)]
            version = self._version()
        conditions = {name: list(keys) for name, keys in CONDITIONS.items()}
        return {
            "fields": [*FIELDS, "at", "depth", "replaced"],
            "conditions": conditions,
            "runs": runs,
            "version": version,
        }

    def success_test(self, first: int, second: int) -> dict[str, Any] | None:
        """Return the test of a difference in success between two runs, None if no task is in both
        or one of them is not indexed to its end. Raises UsageError if there is no such run."""
        with self._lock:
            logs = [self._log_of_run(run) for run in (first, second)]
            if any(log.pending for log in logs):
                return None
            sides = [solved_by_task(log.entries) for log in logs]
        return success_test(*sides)

    def success_tests(self) -> dict[str, dict[str, Any]]:
        """Return the tests of all pairs of runs, by ``FIRST/SECOND`` with the smaller number first;
        of the first ``MAX_TESTED_PAIRS`` if there are more."""
        with self._lock:
            sides = [solved_by_task(log.entries) for log in self._logs]
        pairs = islice(combinations(range(len(sides)), 2), MAX_TESTED_PAIRS)
        tests = {f"{a}/{b}": success_test(sides[a], sides[b]) for a, b in pairs}
        return {name: test for name, test in tests.items() if test is not None}

    def episode(self, run: int, at: int) -> dict[str, Any]:
        """Return one episode in full. Raises UsageError if there is none."""
        with self._lock:
            log = self._log_of_run(run)
            return episode_detail(log.episode(at), log.metadata)

    def trajectory(self, run: int, at: int) -> Trajectory:
        """Return the record of one episode. Raises UsageError if there is none."""
        with self._lock:
            return self._log_of_run(run).episode(at)

    def episodes(self) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """Yield every episode in full, with its run and position, one log after another."""
        for number, log in enumerate(self._logs):
            for at in range(len(log.entries)):
                yield number, at, self.episode(number, at)

    def search(self, text: str) -> list[list[int]]:
        """Return, for each run, the positions of episodes that contain a text, ignoring case: in
        queries, thoughts, actions, observations and messages."""
        folded = text.casefold()
        with self._lock:
            logs = list(self._logs)
        return [
            [at for at, t in enumerate(self._iterate_episodes(log)) if folded in search_text(t)]
            for log in logs
        ]

    def _iterate_episodes(self, log: LogIndex) -> Iterator[Trajectory]:
        for at in range(len(log.entries)):
            with self._lock:
                episode = log.episode(at)
            yield episode

    def _log_of_run(self, run: int) -> LogIndex:
        if not 0 <= run < len(self._logs):
            raise UsageError(f"no run {run}: there are {len(self._logs)}")
        return self._logs[run]


def episode_detail(t: Trajectory, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return an episode as JSON types, without what its run's metadata holds already."""
    detail: dict[str, Any] = to_jsonable(t.replace(steps=()))
    detail["steps"] = list(map(step_to_row, t.steps))
    detail["run"] = to_jsonable(own_metadata(t.run, metadata))
    detail["success"], detail["score"] = t.success, t.score
    return detail


def search_text(t: Trajectory) -> str:
    """Return the text in which an episode is searched."""
    texts = [t.task, t.query, t.error or "", *t.tags]
    for step in t.steps:
        texts += [step.thought, step.action, step.observation, *step.changes, *step.diffs.values()]
        if step.messages:
            texts += [json.dumps(to_jsonable(m), ensure_ascii=False) for m in step.messages]
        else:
            texts.append(step.message)
    return "\n".join(texts).casefold()


def _run_index(log: LogIndex, name: str) -> dict[str, Any]:
    summary = run_summary([] if log.pending else log.entries) | {"episodes": len(log.entries)}
    return {
        "name": name,
        "metadata": to_jsonable(log.metadata),
        "problems": log.problems,
        "pending": log.pending,
        "summary": summary,
        "rows": episode_rows(log.entries),
    }


def _shortest_names(paths: Sequence[Path]) -> list[str]:
    """Return the shortest unambiguous ends of paths."""
    parts = [p.resolve().parts for p in paths]
    out = []
    for own in parts:
        length = 1
        while length < len(own) and sum(p[-length:] == own[-length:] for p in parts) > 1:
            length += 1
        out.append("/".join(own[-length:]))
    return out
