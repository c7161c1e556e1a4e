"""The table of tasks and runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from intercode.cli import main
from intercode.core import trajectories
from intercode.core.types import Score, Step, Trajectory
from intercode.results import report
from intercode.results.report.matrix import column_letters
from intercode.results.tables import Table

META = {"environment": "bash", "dataset": "starter", "agent": "react"}


def write_run(directory: Path, model: str, rewards: dict[int, list[float | None]]) -> None:
    """Write a run; ``rewards`` has those of the epochs of each task, None for an error."""
    trajectories.write_run_metadata(directory, {**META, "model": model})
    for n, values in rewards.items():
        for epoch, reward in enumerate(values):
            trajectories.append_trajectory(
                directory / "trajectories.jsonl",
                Trajectory(
                    f"starter/files/{n}",
                    n,
                    "q",
                    (Step("x", "y", score=Score(reward)),),
                    epoch=epoch,
                    end="error" if reward is None else "submitted",
                    error="lost" if reward is None else None,
                ),
            )


def matrix(runs: Path) -> Table:
    (table,) = [t for t in report.build([runs], matrix=True) if t.name == "starter/matrix"]
    return table


def test_a_cell_says_whether_a_run_solves_a_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "a", "m-1", {2: [1.0], 10: [0.5], 3: [None]})
    write_run(tmp_path / "b", "m-2", {2: [1.0, 0.2], 10: [1.0, 1.0], 4: [0.0, 0.0]})
    table = matrix(tmp_path)
    assert table.columns == ("task", "A", "B", "solved by")
    assert table.rows == (
        ("starter/files/2", 1, 0.5, 2),
        ("starter/files/3", 0, None, 0),
        ("starter/files/4", None, 0.0, 0),
        ("starter/files/10", 0, 1.0, 1),
    )
    assert table.notes[0].startswith("A: react, m-1") and "b)" in table.notes[1]
    assert main(["report", str(tmp_path), "--matrix"]) == 0
    out = capsys.readouterr().out
    assert "starter: tasks and runs" in out
    (row,) = [line for line in out.splitlines() if line.startswith("files/2 ")]
    assert row.split() == ["files/2", "1", "0.50", "2"]
    assert main(["report", str(tmp_path)]) == 0
    assert "tasks and runs" not in capsys.readouterr().out


def test_more_runs_than_letters_have_names_of_two() -> None:
    assert column_letters(28)[-3:] == ["Z", "AA", "AB"]
