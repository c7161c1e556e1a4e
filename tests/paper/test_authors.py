"""The authors' format: exported logs equal the originals, and are read back unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from intercode.core import logs
from intercode.core.errors import UsageError
from intercode.core.logs import lacks_code
from intercode.core.types import Score, Step, Trajectory
from intercode.paper.export import to_log
from intercode.results.export import export

NOT_OURS = {"info", "gold"}
"""Fields of their logs about the gold and the grader, which an episode's record does not have."""
FILES = [
    "bash/ic_bash_multiturn_gpt-3.5_10_turns_fs_1.json",
    "bash/ic_bash_multiturn_gpt-3.5_10_turns_fs_3.json",
    "bash/ic_bash_multiturn_gpt-3.5_10_turns_fs_4.json",
    "bash/ic_bash_multiturn_gpt-4_10_turns_fs_2.json",
    "bash/ic_bash_plan_solve_fs_3.json",
    "bash/ic_bash_plan_solve_fs_4.json",
    "bash/ic_bash_react_10_turns_fs_1.json",
    "bash/ic_bash_react_10_turns_fs_3.json",
    "ctf/ic_ctf_multiturn_gpt-4_10_turns.json",
    "python/ic_python_multiturn_gpt-3.5_7_turns.json",
    "sql/ic_sql_multiturn_gpt-3.5_10_turns.json",
    "sql/ic_sql_multiturn_human_10_turns.json",
    "sql/ic_sql_plan_solve.json",
    "sql/ic_sql_react_10_turns.json",
]


def _rows(path: Path) -> dict[str, dict[str, Any]]:
    found = json.loads(path.read_text("utf-8"))
    rows: dict[str, dict[str, Any]] = found.get("logs", found)
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_an_exported_published_log_is_unchanged(
    recorded_dir: Path, tmp_path: Path, name: str
) -> None:
    original = recorded_dir / name
    written = export(original, "authors", tmp_path)
    (copy,) = written.files
    assert copy.name == original.name and written.omitted == ()
    theirs, ours = _rows(original), _rows(copy)
    assert list(theirs) == list(ours) and written.records == len(theirs)
    for key, episode in theirs.items():
        for field, value in episode.items():
            if field in ("turn_history", "summary"):
                assert {k: ours[key][field].get(k) for k in value} == value, (key, field)
            elif field not in NOT_OURS:
                assert ours[key][field] == value, (key, field)
    assert logs.load_log(copy) == logs.load_log(original)


def _own(**changes: Any) -> Trajectory:
    steps = (
        Step("ls", "a\n", score=None, message="Let me look.\nls"),
        Step("", "Nothing was run.", executed=False, valid=False, message="I think"),
        Step("submit", "a\n", score=Score(0.5), thought="done"),
    )
    run = {
        "environment": "bash",
        "dataset": "nl2bash",
        "agent": "react",
        "model": "p/m",
        "max_turns": 10,
    }
    values = {"group": "fs_2", "run": run, "end": "submitted", **changes}
    return Trajectory("nl2bash/fs_2/7", 7, "q", steps, **values)


def test_a_run_of_ours_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "ic_bash_react_10_turns_fs_2.json"
    path.write_text(json.dumps(to_log([_own()])))
    (back,) = logs.load_log(path)
    assert (back.task, back.index, back.group, back.query) == ("nl2bash/fs_2/7", 7, "fs_2", "q")
    assert [s.action for s in back.steps] == ["execute[ls]", "I think", "submit"]
    assert [s.executed for s in back.steps] == [True, False, True]
    assert lacks_code(back.steps[1])
    assert [s.score_value for s in back.steps] == [0.0, 0.0, 0.5]
    assert back.steps[2].thought == "done" and back.run["agent"] == "react"


def test_file_systems_and_samples_get_files_of_their_own(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    from intercode.core import trajectories

    for episode in (_own(), _own(group="fs_1"), _own(epoch=1), _own(end="error", error="lost")):
        trajectories.append_trajectory(log, episode)
    written = export(log, "authors", tmp_path / "out")
    names = {str(f.relative_to(tmp_path / "out")) for f in written.files}
    assert names == {
        "ic_bash_react_10_turns_fs_2.json",
        "ic_bash_react_10_turns_fs_1.json",
        "epoch-2/ic_bash_react_10_turns_fs_2.json",
    }
    assert written.records == 3 and "1 episodes that failed" in written.omitted[0]
    again = tmp_path / "again.jsonl"
    trajectories.append_trajectory(again, _own(restarts=(1, 2)))
    written = export(again, "authors", tmp_path / "last")
    (row,) = _rows(written.files[0]).values()
    assert row["turn_history"]["actions"] == ["submit"] and row["summary"]["turns_taken"] == 1
    assert "2 attempts" in written.omitted[0]
    with pytest.raises(UsageError, match="several files"):
        export(log, "authors", tmp_path / "one.json")
