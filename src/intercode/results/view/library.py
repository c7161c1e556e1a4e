"""All the runs that a page shows: found, indexed once, and read again where they have grown."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from intercode.core.errors import UsageError
from intercode.core.logs import find_logs
from intercode.core.types import Trajectory, to_jsonable
from intercode.results.compare.comparison import CONDITIONS
from intercode.results.view.log_index import LogIndex, open_log
from intercode.results.view.rows import FIELDS, episode_rows, own_metadata, run_summary


class Library:
    """The runs at some paths. May be used by several threads.

    A run is named by its position. One that is added below the same paths while a page is open is
    put last, so that positions hold. Raises UsageError for a path that holds no log.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = [Path(p) for p in paths]
        self._lock = threading.Lock()
        self._logs: list[LogIndex] = []
        self._known_paths: set[Path] = set()
        self.refresh()

    def refresh(self) -> None:
        """Look for new runs and new episodes."""
        with self._lock:
            for path in find_logs(self._paths):
                if path.resolve() not in self._known_paths:
                    self._known_paths.add(path.resolve())
                    self._logs.append(open_log(path))
            for log in self._logs:
                log.refresh()

    def index(self) -> dict[str, Any]:
        """What the page's lists are made of: runs, each with its facts, figures and rows."""
        with self._lock:
            names = _shortest_names([log.path for log in self._logs])
            runs = [_run_index(log, name) for log, name in zip(self._logs, names, strict=True)]
        conditions = {name: list(facts) for name, facts in CONDITIONS.items()}
        return {
            "fields": [*FIELDS, "at", "depth", "replaced"],
            "conditions": conditions,
            "runs": runs,
        }

    def episode(self, run: int, at: int) -> dict[str, Any]:
        """One episode in full. Raises UsageError where there is none."""
        with self._lock:
            log = self._log_of_run(run)
            return episode_detail(log.episode(at), log.metadata)

    def episodes(self) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """Every episode in full, with its run and position, one log after another."""
        for number, log in enumerate(self._logs):
            for at in range(len(log.entries)):
                yield number, at, self.episode(number, at)

    def search(self, text: str) -> list[list[int]]:
        """For each run, the positions of episodes that hold a text, case aside: in what was asked,
        thought, done, printed and said."""
        wanted = text.casefold()
        with self._lock:
            logs = list(self._logs)
        return [
            [at for at, t in enumerate(self._iterate_episodes(log)) if wanted in search_text(t)]
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


def episode_detail(t: Trajectory, facts: Mapping[str, Any]) -> dict[str, Any]:
    """An episode as JSON types, without what its run says already."""
    out: dict[str, Any] = to_jsonable(t)
    out["run"] = to_jsonable(own_metadata(t.run, facts))
    out["success"], out["reward"] = t.success, t.reward
    return out


def search_text(t: Trajectory) -> str:
    """The text in which an episode is searched."""
    said = [t.task, t.query, t.error or "", *t.tags]
    for step in t.steps:
        said += [step.thought, step.action, step.observation, *step.changes, *step.diffs.values()]
        if step.messages:
            said += [json.dumps(to_jsonable(m), ensure_ascii=False) for m in step.messages]
        else:
            said.append(step.message)
    return "\n".join(said).casefold()


def _run_index(log: LogIndex, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "facts": to_jsonable(log.metadata),
        "problems": log.problems,
        "summary": run_summary(log.entries),
        "rows": episode_rows(log.entries),
    }


def _shortest_names(paths: Sequence[Path]) -> list[str]:
    """The shortest ends of paths that tell them apart."""
    parts = [p.resolve().parts for p in paths]
    out = []
    for own in parts:
        length = 1
        while length < len(own) and sum(p[-length:] == own[-length:] for p in parts) > 1:
            length += 1
        out.append("/".join(own[-length:]))
    return out
