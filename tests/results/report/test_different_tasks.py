"""Results on different tasks never share a column without a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from intercode.core import trajectories
from intercode.core.types import Score, Step, Trajectory
from intercode.results import report

META = {
    "environment": "ctf",
    "dataset": "ic-ctf:inspect",
    "dataset_hash": "aaaa",
    "profile": "standard",
    "scoring": "1",
    "image": "ctf",
    "agent": "try-again",
    "comparable": True,
}


def _run(directory: Path, tasks: range, **meta: str) -> Path:
    trajectories.write_run_metadata(directory, {**META, **meta})
    for n in tasks:
        episode = Trajectory(
            f"ic-ctf/{n}", n, "q", (Step("x", "y", score=Score(1.0)),), end="submitted"
        )
        trajectories.append_trajectory(directory / "trajectories.jsonl", episode)
    return directory


def test_named_subsets_get_tables_of_their_own(tmp_path: Path) -> None:
    runs = [
        _run(tmp_path / "a", range(3), model="m"),
        _run(tmp_path / "b", range(2), model="m", dataset="ic-ctf:offline", dataset_hash="bbbb"),
        _run(tmp_path / "c", range(3), model="n"),
    ]
    tables = {t.name: t for t in report.build(runs)}
    assert set(tables) == {"ic-ctf:inspect", "ic-ctf:offline"}
    assert [len(t.rows) for t in tables.values()] == [2, 1]
    assert not any("different tasks" in n for t in tables.values() for n in t.notes)


def test_rows_on_different_tasks_have_a_warning(tmp_path: Path) -> None:
    runs = [
        _run(tmp_path / "a", range(3), model="m"),
        _run(tmp_path / "b", range(1, 6), model="n"),
    ]
    (table,) = report.build(runs)
    assert table.notes[-1] == (
        "ic-ctf:inspect: rows that rest on different tasks cannot be compared "
        "(tasks: try-again m 3, try-again n 5; in all of them: 2)."
    )


@pytest.mark.paper
def test_published_logs_of_one_dataset_as_well(tmp_path: Path, recorded_dir: Path) -> None:
    log = recorded_dir / "ctf" / "ic_ctf_multiturn_gpt-4_10_turns.json"
    table, _missing = report.build([log])
    assert table.notes == ()
    import json

    half = dict(list(json.loads(log.read_text()).items())[:4])
    other = tmp_path / "ic_ctf_gpt-4_25_turns.json"
    other.write_text(json.dumps(half))
    table, _missing = report.build([log, other])
    assert table.notes[0].startswith("ic-ctf: rows that rest on different tasks")
    assert "gpt-4 93, try-again gpt-4 4; in all of them: 4" in table.notes[0]
