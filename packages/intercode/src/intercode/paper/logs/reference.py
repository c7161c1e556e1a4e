"""Reads reference re-runs: flat lists of steps that the original InterCode package re-executed."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError
from intercode.core.logs.formats import LogFormat, Stability
from intercode.core.types import Score, Step, Trajectory

Row = dict[str, Any]
_ROW_KEYS = {"fs", "task", "action", "obs"}


def split_reference_episodes(rows: object, path: Path) -> list[list[Row]]:
    """Return the rows of each episode, those with the same file system and task, in order.

    A row has all of its keys: ``stable``, ``gold_obs``, ``recorded_obs``, ``miss`` ... Raises
    DataError for any other list.
    """
    if not isinstance(rows, list) or not rows:
        raise DataError(f"{path}: a list of steps is expected")
    for number, row in enumerate(rows):
        if not isinstance(row, dict) or not row.keys() >= _ROW_KEYS:
            raise DataError(f"{path}: row {number} lacks fs, task, action or obs")
    return [list(g) for _, g in groupby(rows, key=lambda r: (r["fs"], r["task"]))]


def parse_reference_log(rows: object, path: Path) -> list[Trajectory]:
    """Return the episodes of a reference file, with empty queries: the file has none."""
    model = path.stem.rpartition("_")[0] or None
    return [
        _trajectory_from_rows(episode, model, path)
        for episode in split_reference_episodes(rows, path)
    ]


def _trajectory_from_rows(episode: list[Row], model: str | None, path: Path) -> Trajectory:
    first = episode[0]
    group = f"fs_{first['fs']}"
    return Trajectory(
        task=f"nl2bash/{group}/{first['task']}",
        index=int(first["task"]),
        query="",
        steps=tuple(_step_from_row(row) for row in episode),
        group=group,
        run={
            "source": "reference",
            "file": path.name,
            "environment": "bash",
            "dataset": f"nl2bash:{group}",
            "profile": "original",
            "agent": "try-again",
            "model": model,
        },
    )


def _step_from_row(row: Row) -> Step:
    """Return the step of a row. Its reward is None if the original package raised an error."""
    reward = row.get("reward")
    parts = {k: float(v) for k, v in (row.get("parts") or {}).items() if v is not None}
    return Step(
        action=row["action"],
        observation=row["obs"] or "",
        valid=row.get("valid"),
        exit_code=None,
        timed_out=row["obs"] == "Command timed out",
        score=None if reward is None else Score(float(reward), parts),
    )


def _stability(rows: object, path: Path) -> Stability:
    return [
        [row.get("stable") for row in episode] for episode in split_reference_episodes(rows, path)
    ]


def is_reference_log(rows: list[Any]) -> bool:
    """Return whether a list begins with a step of a re-run."""
    return bool(rows) and isinstance(rows[0], dict) and rows[0].keys() >= _ROW_KEYS


FORMAT = LogFormat(
    list, "re-run of published actions", parse_reference_log, is_reference_log, _stability
)
