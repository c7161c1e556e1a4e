"""A run in Python: its metadata, its episodes, and both as pandas tables."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from intercode.core import logs, trajectories
from intercode.core.errors import ConfigError, UsageError
from intercode.core.trajectories import step_to_row
from intercode.core.types import Step, Trajectory
from intercode.core.types.html import html_details, html_table
from intercode.results.rendering import render
from intercode.results.report import build
from intercode.results.short_text import join_first
from intercode.results.statistics.figures import best_reward
from intercode.results.statistics.metrics import (
    drop_retried_failures,
    is_refused_action,
    is_solved,
    known_usage,
    turn_count,
)
from intercode.results.tables import Table

_REPEATED_METADATA = ("environment", "dataset", "agent", "model", "profile")
"""Metadata that every row repeats, so that the tables of several runs can be joined."""


_MAX_SHOWN = 200
"""How many episodes a notebook lists."""


@dataclass(frozen=True)
class Run:
    """A run directory, a ``.jsonl`` file of trajectories, or a log in the authors' format.

    It is read at the first access, which raises DataError if that fails.

    Attributes:
        path: The directory or file.

    >>> from tempfile import TemporaryDirectory
    >>> import intercode
    >>> with TemporaryDirectory() as folder:
    ...     run = intercode.evaluate("starter", "gold", limit=1, out=f"{folder}/gold", quiet=True)
    ...     print([episode.success for episode in run.episodes])
    [True]
    """

    path: Path

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        """The content of run.json, else the run metadata of the first episode."""
        if (self.path / trajectories.RUN_FILE).is_file():
            return trajectories.read_run_metadata(self.path)
        return self.episodes[0].run if self.episodes else {}

    @cached_property
    def episodes(self) -> tuple[Trajectory, ...]:
        """One episode for each task and epoch, in the order of the dataset and the epochs, each
        before its branches. An episode that ended in an error is left out if a later attempt
        succeeded."""
        found = drop_retried_failures(logs.load_log(self.path))
        rank = {task: n for n, task in enumerate(dict.fromkeys(t.task for t in found))}
        return tuple(sorted(found, key=lambda t: (t.index, rank[t.task], t.epoch)))

    def episode_rows(self) -> list[dict[str, Any]]:
        """Return one row per episode.

        Unknown values are None, such as tokens and cost if an answer came from the cache. An
        episode that ended in an error of the infrastructure has ``success`` False and ``score`` 0,
        so that errors never raise a mean. ``seconds`` is the time of the whole episode,
        ``model_seconds`` the time spent waiting for the model; ``cost`` is in US dollars.

        Raises:
            DataError: The run cannot be read.
        """
        return [_episode_row(t) for t in self.episodes]

    def step_rows(self) -> list[dict[str, Any]]:
        """Return one row per turn, with turns counted from 1.

        Raises:
            DataError: The run cannot be read.
        """
        return [
            {**_episode_key(t), **_step_row(step), "turn": n}
            for t in self.episodes
            for n, step in enumerate(t.steps, 1)
        ]

    def tables(self) -> list[Table]:
        """Return the tables of ``intercode report`` for this run.

        Raises:
            UsageError: The run has no episode.
            DataError: The run cannot be read.
        """
        return build([self.path])

    def __str__(self) -> str:
        return render(self.tables()) if self.episodes else f"no episodes in {self.path}"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the tables, and below them the episodes."""
        rows = [
            (t.task, str(t.epoch), "solved" if is_solved(t) else "", str(int(turn_count(t))), t.end)
            for t in self.episodes
        ]
        shown, columns = rows[:_MAX_SHOWN], ("task", "epoch", "", "turns", "end")
        more = f", the first {_MAX_SHOWN}" if len(rows) > _MAX_SHOWN else ""
        episodes = html_table(columns, shown, right=(False, True, False, True, False))
        return "".join(
            [
                *(table._repr_html_() for table in self.tables()),
                html_details(f"{len(rows)} episodes in {self.path}{more}", episodes),
            ]
        )

    def to_pandas(self) -> Any:
        """Return ``episode_rows`` as a DataFrame.

        Raises:
            ConfigError: pandas is not installed.
            DataError: The run cannot be read.
        """
        return _to_frame(self.episode_rows())

    def steps_to_pandas(self) -> Any:
        """Return ``step_rows`` as a DataFrame.

        Raises:
            ConfigError: pandas is not installed.
            DataError: The run cannot be read.
        """
        return _to_frame(self.step_rows())


def load_run(path: str | Path) -> Run:
    """Return the run in a directory. It is read at the first access.

    Args:
        path: The directory of a run or above a single one, a ``.jsonl`` file of trajectories, or a
            log in the authors' format.

    Raises:
        UsageError: There is no run, or there are several, which the message names.
    """
    if not path or not isinstance(path, str | os.PathLike):
        raise UsageError(f"the directory of a run is a path, not {path!r:.80}")
    path = Path(path).expanduser()
    logs_found = logs.find_logs([path])
    if [p.resolve() for p in logs_found] != [path.resolve()]:
        if len(logs_found) == 1:
            return Run(logs_found[0])
        names = join_first([str(p) for p in logs_found], 5)
        raise UsageError(f"{path} holds {len(logs_found)} runs and logs, load one of them: {names}")
    return Run(path)


def _episode_key(episode: Trajectory) -> dict[str, Any]:
    return {"task": episode.task, "epoch": episode.epoch, "episode": episode.id or None}


def _episode_row(t: Trajectory) -> dict[str, Any]:
    usage = asdict(known_usage(t))
    usage["model_seconds"] = usage.pop("seconds")
    return {
        **_episode_key(t),
        "index": t.index,
        "group": t.group,
        "hardness": t.hardness,
        "success": is_solved(t),
        "score": best_reward(t),
        "turns": int(turn_count(t)),
        "end": t.end,
        "error": t.error,
        "invalid": sum(step.valid is False for step in t.steps),
        "refused": sum(map(is_refused_action, t.steps)),
        "seconds": t.seconds,
        **usage,
        "attempts": t.run.get("attempts", 1),
        "seed": t.seed,
        "restarts": len(t.restarts),
        "parent": t.parent,
        "branched_at": t.branched_at,
        "query": t.query,
        **{name: t.run.get(name) for name in _REPEATED_METADATA},
    }


def _step_row(step: Step) -> dict[str, Any]:
    usage = asdict(step.usage)
    usage["model_seconds"] = usage.pop("seconds")
    omitted = ("messages", "usage", "parts", "hashes", "context", "changes", "diffs")
    fields = {k: v for k, v in step_to_row(step).items() if k not in omitted}
    parts = {f"part_{name}": value for name, value in step.parts.items()}
    return {**fields, "changes": len(step.changes), **usage, **parts}


def _to_frame(rows: Iterable[dict[str, Any]]) -> Any:
    try:
        pandas = importlib.import_module("pandas")
    except ImportError as e:
        raise ConfigError(
            "tables need pandas: pip install 'intercode-gym[data]'; without it there are "
            "episode_rows() and step_rows()"
        ) from e
    return pandas.DataFrame(list(rows))
