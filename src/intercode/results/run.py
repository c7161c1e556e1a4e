"""A run in Python: what it was obtained with, its episodes, and both as pandas tables."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from intercode.core import logs, trajectories
from intercode.core.errors import ConfigError, UsageError
from intercode.core.types import Step, Trajectory
from intercode.results.statistics.metrics import drop_retried_failures, is_failed
from intercode.results.statistics.samples import turn_count

_REPEATED_METADATA = ("environment", "dataset", "agent", "model", "profile")
"""Facts that every row repeats, so that the tables of several runs can be joined."""


@dataclass(frozen=True)
class Run:
    """A run directory, a ``.jsonl`` of trajectories, or a log in the authors' schema; read when it
    is first asked for."""

    path: Path

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        """What the results were obtained with: run.json, else what the first episode says."""
        if (self.path / trajectories.RUN_FILE).is_file():
            return trajectories.read_run_metadata(self.path)
        return self.episodes[0].run if self.episodes else {}

    @cached_property
    def episodes(self) -> tuple[Trajectory, ...]:
        """One for each task and epoch, in the order in which they ended: where another try has
        succeeded, those that ended in an error are left out. Branches stand beside them."""
        return tuple(drop_retried_failures(logs.load_log(self.path)))

    def episode_rows(self) -> list[dict[str, Any]]:
        """One row an episode. Unknown values are None; ``success`` and ``reward`` are None for an
        episode that ended in an error, as it has no result. ``seconds`` are of the whole episode,
        ``model_seconds`` those spent waiting for the model; ``cost`` is in US dollars."""
        return [_episode_row(t) for t in self.episodes]

    def step_rows(self) -> list[dict[str, Any]]:
        """One row a turn, turns counted from 1."""
        return [
            {**_episode_key(t), **_step_row(step), "turn": n}
            for t in self.episodes
            for n, step in enumerate(t.steps, 1)
        ]

    def to_pandas(self) -> Any:
        """``episode_rows`` as a DataFrame. Raises ConfigError where pandas is not installed."""
        return _to_frame(self.episode_rows())

    def steps_to_pandas(self) -> Any:
        """``step_rows`` as a DataFrame. Raises ConfigError where pandas is not installed."""
        return _to_frame(self.step_rows())


def load_run(path: str | Path) -> Run:
    """The run in a directory, which is read when something of it is asked for.

    Raises UsageError where there is none, naming the runs below it.
    """
    path = Path(path).expanduser()
    found = logs.find_logs([path])
    if [p.resolve() for p in found] != [path.resolve()]:
        if len(found) == 1:
            return Run(found[0])
        some = ", ".join(str(p) for p in found[:5])
        raise UsageError(f"{path} holds {len(found)} runs and logs, load one of them: {some}")
    return Run(path)


def _episode_key(episode: Trajectory) -> dict[str, Any]:
    return {"task": episode.task, "epoch": episode.epoch, "episode": episode.id or None}


def _episode_row(t: Trajectory) -> dict[str, Any]:
    played = not is_failed(t)
    usage = asdict(t.usage)
    usage["model_seconds"] = usage.pop("seconds")
    return {
        **_episode_key(t), "index": t.index, "group": t.group, "hardness": t.hardness,
        "success": t.success if played else None, "reward": t.reward if played else None,
        "turns": int(turn_count(t)), "end": t.end, "error": t.error,
        "invalid": sum(step.valid is False for step in t.steps),
        "refused": sum(step.refused for step in t.steps),
        "seconds": t.seconds, **usage, "attempts": t.run.get("attempts", 1), "seed": t.seed,
        "parent": t.parent, "branched_at": t.branched_at, "query": t.query,
        **{name: t.run.get(name) for name in _REPEATED_METADATA},
    }  # fmt: skip


def _step_row(step: Step) -> dict[str, Any]:
    usage = asdict(step.usage)
    usage["model_seconds"] = usage.pop("seconds")
    left_out = ("messages", "usage", "parts", "hashes", "context", "changes", "diffs")
    fields = {k: v for k, v in asdict(step).items() if k not in left_out}
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
