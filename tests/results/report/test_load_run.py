"""``load_run``: a run in Python, and as pandas tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import intercode
from intercode.core import trajectories
from intercode.core.errors import ConfigError, UsageError
from intercode.core.types import Score, Step, Trajectory, Usage
from intercode.results import report

STEP = Step(
    "ls", "a", score=Score(0.5, {"output": 0.5}), usage=Usage(10, 2, 1, cost=0.1, seconds=2)
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    out = tmp_path / "run"
    trajectories.write_run_metadata(
        out, {"agent": "react", "dataset": "starter", "versions": {"x": "1"}}
    )
    base = Trajectory("t/0", 0, "q", (STEP, Step("pwd", "/", valid=False)), end="submitted", id="a")
    failed = base.replace(task="t/1", steps=(), end="error", error="lost", id="")
    for t in (base, base.replace(epoch=1, id="b"), failed, failed.replace(epoch=1)):
        trajectories.append_trajectory(out / trajectories.TRAJECTORIES_FILE, t)
    trajectories.append_trajectory(
        out / trajectories.TRAJECTORIES_FILE, base.replace(task="t/1", end="solved", id="c")
    )
    return out


def test_episodes_and_metadata(run: Path) -> None:
    loaded = intercode.load_run(run)
    assert loaded.metadata["versions"] == {"x": "1"}
    found = [(t.task, t.epoch, t.end) for t in loaded.episodes]
    assert found == [
        ("t/0", 0, "submitted"),
        ("t/0", 1, "submitted"),
        ("t/1", 0, "solved"),
        ("t/1", 1, "error"),
    ]


def test_episodes_are_in_the_order_of_the_dataset(tmp_path: Path) -> None:
    first = Trajectory("b", 0, "q", (), end="submitted", id="1")
    other = first.replace(task="a", index=1, id="2")
    branch = first.replace(id="3", parent="1", branched_at=0)
    for t in (other.replace(epoch=1), first, branch, other, first.replace(epoch=1)):
        trajectories.append_trajectory(tmp_path / trajectories.TRAJECTORIES_FILE, t)
    found = [(t.task, t.epoch, t.parent) for t in intercode.load_run(tmp_path).episodes]
    assert found == [
        ("b", 0, None),
        ("b", 0, "1"),
        ("b", 1, None),
        ("a", 0, None),
        ("a", 1, None),
    ]


def test_tables(run: Path) -> None:
    loaded = intercode.load_run(str(run))
    pytest.importorskip("pandas", reason="pip install 'intercode-gym[data]'")
    episodes = loaded.to_pandas()
    assert episodes["score"].tolist()[:2] == [0.5, 0.5]
    assert episodes.groupby("task").success.count().to_dict() == {"t/0": 2, "t/1": 2}
    failed = episodes[episodes.end == "error"]
    assert failed.success.tolist() == [False] and failed.score.tolist() == [0.0]
    first = episodes.iloc[0]
    assert (first.turns, first.invalid, first.prompt_tokens, first.cost) == (2, 1, 10, 0.1)
    assert (first.model_seconds, first.agent, first.dataset) == (2, "react", "starter")
    steps = loaded.steps_to_pandas()
    assert steps[["task", "epoch", "turn"]].values.tolist()[:3] == [
        ["t/0", 0, 1],
        ["t/0", 0, 2],
        ["t/0", 1, 1],
    ]
    assert steps.part_output.tolist()[0] == 0.5 and len(steps) == 6


def test_without_pandas_there_are_rows(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    loaded = intercode.load_run(run)
    with pytest.raises(ConfigError, match=r"intercode-gym\[data\]"):
        loaded.to_pandas()
    assert len(loaded.episode_rows()) == 4 and loaded.step_rows()[0]["action"] == "ls"


def test_a_directory_of_several_runs_names_them(run: Path, tmp_path: Path) -> None:
    assert intercode.load_run(tmp_path).path == run
    trajectories.write_run_metadata(tmp_path / "other", {"agent": "noop"})
    with pytest.raises(UsageError, match="holds 2 runs and logs"):
        intercode.load_run(tmp_path)
    with pytest.raises(UsageError, match="no such file"):
        intercode.load_run(tmp_path / "absent")


def test_importing_the_package_loads_none_of_it() -> None:
    code = (
        "import sys, intercode; "
        "print([m for m in sys.modules if m.startswith(('pandas', 'intercode.results.report'))]); "
        "intercode.load_run; print('intercode.results.run' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "True"]
    with pytest.raises(AttributeError, match="no attribute 'lod_run'"):
        intercode.lod_run  # noqa: B018


@pytest.mark.paper
@pytest.mark.parametrize("name", ["ic_sql_plan_solve.json", "ic_sql_react_10_turns.json"])
def test_its_figures_are_those_of_report(recorded_dir: Path, name: str) -> None:
    log = recorded_dir / "sql" / name
    rows = list(intercode.load_run(log).episode_rows())
    table = next(t for t in report.build([log]) if t.name == "logs")
    assert sum(r["turns"] for r in rows) / len(rows) == pytest.approx(table.cell("turns", log=name))
    assert sum(r["success"] for r in rows) == table.cell("solved", log=name)
