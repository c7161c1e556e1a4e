"""Parts that several machines played are merged into one run, or refused with the reason."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from intercode.cli import main
from intercode.core import trajectories
from intercode.core.config import EvalConfig
from intercode.core.errors import DataError, UnknownNameError, UsageError
from intercode.core.types import Trajectory
from intercode.evaluation.evaluate.history import RunHistory
from intercode.evaluation.evaluate.merge import merge
from intercode.evaluation.evaluate.run import evaluate
from intercode.models import ScriptedModel
from intercode.results.run import load_run

pytestmark = pytest.mark.sandbox
Read = Callable[[Path], list[Trajectory]]


@pytest.fixture
def parts(squares: str, tmp_path: Path) -> tuple[Path, Path]:
    """Return two runs of tasks 0 to 3 and 4 to 7, with the same answer to all."""
    model = ScriptedModel(lambda _: "```bash\necho 4\n```")
    config = EvalConfig(squares, "single-turn", model="m")
    made = []
    for name, tasks in (("a", "0123"), ("b", "4567")):
        config = replace(config, tasks=tuple(tasks), out=tmp_path / name)
        made.append(evaluate(config, model=model, quiet=True))
    return made[0], made[1]


def log(directory: Path) -> Path:
    return directory / trajectories.TRAJECTORIES_FILE


def test_parts_make_one_run_that_can_be_resumed(
    parts: tuple[Path, Path],
    squares: str,
    tmp_path: Path,
    episodes_of: Read,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "whole"
    log(parts[1]).write_bytes(log(parts[1]).read_bytes() + b'{"v": 2, "task": "su')
    assert main(["report", *map(str, parts), "--merge", str(out)]) == 0
    assert f"merged 2 runs: 8 episodes in {out}" in capsys.readouterr().err
    assert sorted(t.index for t in episodes_of(out)) == list(range(8))
    facts = load_run(out).metadata
    assert facts["merged_from"] == ["a", "b"] and facts["config"]["tasks"] == list("01234567")
    assert RunHistory(out).earlier_usage.requests == 8
    assert sorted(p.name for p in out.iterdir()) == [
        "README.txt",
        "history.jsonl",
        "run.json",
        "trajectories.jsonl",
    ]
    config = EvalConfig(squares, "single-turn", model="m", epochs=2, out=out)
    model = ScriptedModel(lambda _: "```bash\necho 4\n```")
    evaluate(config, model=model, quiet=True)
    assert len(episodes_of(out)) == 16
    with pytest.raises(UsageError, match="contains a run already"):
        merge(parts, out)


def test_different_settings_are_refused_by_name(
    parts: tuple[Path, Path], squares: str, tmp_path: Path
) -> None:
    other = tmp_path / "c"
    evaluate(
        EvalConfig(squares, "gold", limit=1, out=other, env_options={"timeout": 3.0}), quiet=True
    )
    with pytest.raises(UsageError, match=r"differ in agent 'single-turn' and 'gold'; .*timeout"):
        merge([parts[0], other], tmp_path / "whole")
    with pytest.raises(UsageError, match="not the directory of a run"):
        merge([parts[0], tmp_path / "absent"], tmp_path / "whole")
    assert not (tmp_path / "whole").exists()


def test_the_same_episode_counts_once_and_a_result_goes_before_an_error(
    parts: tuple[Path, Path], tmp_path: Path, episodes_of: Read
) -> None:
    failed = episodes_of(parts[0])[1].replace(end="error", error="lost", id="")
    gone = episodes_of(parts[0])[0].replace(task="sums/9", end="error", error="lost", id="")
    for episode in (episodes_of(parts[0])[0], failed, gone):
        trajectories.append_trajectory(log(parts[1]), episode)
    for order in (parts, parts[::-1]):
        done = merge(order, tmp_path / order[0].name / "whole")
        assert (done.episodes, done.identical, done.errors_replaced, done.conflicts_resolved) == (
            9,
            1,
            1,
            0,
        )
        found = {t.task: t for t in episodes_of(done.out)}
        assert found[failed.task].error is None and found["sums/9"].error == "lost"


def test_different_results_are_refused_or_decided(
    parts: tuple[Path, Path], tmp_path: Path, episodes_of: Read
) -> None:
    first = episodes_of(parts[0])[0]
    trajectories.append_trajectory(log(parts[1]), first.replace(id="other", end="turn_limit"))
    with pytest.raises(UsageError, match=rf"different results for {first.task} \(epoch 0\)"):
        merge(parts, tmp_path / "x")
    merge(parts, tmp_path / "first", "first")
    ids = {(t.task, t.epoch): t.id for t in episodes_of(tmp_path / "first")}
    assert len(ids) == 8 and ids[first.task, 0] == first.id
    merge(parts, tmp_path / "epochs", "epochs")
    ids = {(t.task, t.epoch): t.id for t in episodes_of(tmp_path / "epochs")}
    assert len(ids) == 9 and ids[first.task, 1] == "other"
    with pytest.raises(UnknownNameError, match="did you mean 'first'"):
        merge(parts, tmp_path / "x", "frst")  # type: ignore[arg-type]


def test_branches_come_with_their_episodes(
    parts: tuple[Path, Path], tmp_path: Path, episodes_of: Read
) -> None:
    root = episodes_of(parts[0])[0]
    branch = root.replace(id="b1", parent=root.id, branched_at=1)
    for part in parts:
        trajectories.append_trajectory(log(part), branch)
    done = merge(parts, tmp_path / "whole")
    assert done.episodes == 8
    assert [t.id for t in episodes_of(done.out) if t.parent] == ["b1"]


def test_a_broken_file_and_a_run_in_progress_are_refused(
    parts: tuple[Path, Path], tmp_path: Path
) -> None:
    with (parts[0] / ".lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="a process is working in"):
            merge(parts, tmp_path / "whole")
    rows = log(parts[0]).read_bytes().splitlines(keepends=True)
    log(parts[0]).write_bytes(rows[0] + b"{}\n" + rows[1])
    with pytest.raises(DataError, match=r"trajectories\.jsonl, line 2"):
        merge(parts, tmp_path / "whole")
    assert json.loads(rows[0])["v"] == 2 and not (tmp_path / "whole").exists()
