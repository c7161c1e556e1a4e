"""Trajectory files: reading what was written, also after a writer was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from intercode.core import trajectories
from intercode.core.errors import DataError, UsageError
from intercode.core.types import Score, Step, Trajectory, Usage

FULL = Trajectory(
    task="starter/files/1",
    index=3,
    query="Count the files – all of them",
    steps=(
        Step("ls | wc -l", "7\n\u2028\udc80", score=Score(0.67, {"output": 0.33}), changes=("/a",)),
        Step("", "no code", executed=False, valid=None, usage=Usage(10, None, 1), message="hm"),
    ),
    end="turn_limit",
    group="files",
    hardness="easy",
    seconds=0.25,
    run={"profile": "standard", "comparable": False, "limits": {"disk": 1}},
)


def _episode(task: str, **more: object) -> Trajectory:
    return Trajectory(task=task, index=0, query="q", steps=()).replace(**more)


def test_an_episode_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "t.jsonl"
    trajectories.append_trajectory(path, FULL)
    trajectories.append_trajectory(path, _episode("b"))
    assert list(trajectories.read_trajectories(path)) == [FULL, _episode("b")]
    assert path.read_bytes().count(b"\n") == 2


def test_a_step_whose_score_is_recorded_as_reward_is_read_with_it() -> None:
    row = trajectories.trajectory_to_row(FULL)
    for step in row["steps"]:
        step["reward"] = step.pop("score")
    assert trajectories.trajectory_from_row(row) == FULL and FULL.score == 0.67


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reward": 1.0}, r"'steps\[0\]' has both 'score' and 'reward'"),
        ({"task": "t"}, r"'steps\[0\]\.task' is unknown"),
        ({"terminated": False}, r"'steps\[0\]\.terminated' is unknown"),
        ({"omitted_bytes": 0}, r"'steps\[0\]\.omitted_bytes' is unknown"),
        ({"score": None, "parts": {"a": "1"}}, r"'steps\[0\]\.parts\.a' must be a number"),
        ({"score": "1"}, r"'steps\[0\]\.score' must be a number, not '1'"),
    ],
)
def test_a_step_with_what_no_record_has_is_refused(
    changes: dict[str, object], message: str
) -> None:
    row = trajectories.trajectory_to_row(FULL)
    row["steps"][0].update(changes)
    with pytest.raises(DataError, match=message):
        trajectories.trajectory_from_row(row)


def test_a_reward_of_an_older_record_is_named_as_the_record_names_it() -> None:
    row = trajectories.trajectory_to_row(FULL)
    del row["steps"][1]["score"]
    row["steps"][1]["reward"] = "1"
    with pytest.raises(DataError, match=r"'steps\[1\]\.reward' must be a number, not '1'"):
        trajectories.trajectory_from_row(row)


def test_a_record_has_the_score_and_not_what_the_step_paid() -> None:
    step = Step("a", "b", score=Score(0.5, {"x": 0.5}, {"why": "so"}), reward=0.25, truncated=True)
    assert step.as_recorded() == Step("a", "b", score=Score(0.5, {"x": 0.5}))
    assert trajectories.step_to_row(step) == trajectories.step_to_row(step.as_recorded())


@pytest.mark.parametrize(
    "left", [b'{"v": 2, "task": "x', b'{"v": 2, "query": "\xc3', b"{", b"[" * 100_000], ids=range(4)
)
def test_an_incomplete_last_line_is_skipped_and_removed(tmp_path: Path, left: bytes) -> None:
    path = tmp_path / "t.jsonl"
    trajectories.append_trajectory(path, FULL)
    whole = path.read_bytes()
    path.write_bytes(whole + left)
    assert trajectories.has_incomplete_line(path)
    assert list(trajectories.read_trajectories(path)) == [FULL]
    trajectories.append_trajectory(path, _episode("b"))
    assert path.read_bytes().startswith(whole)
    assert [t.task for t in trajectories.read_trajectories(path)] == [FULL.task, "b"]


def test_an_incomplete_line_longer_than_a_block_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    trajectories.append_trajectory(path, FULL)
    with path.open("ab") as file:
        file.write(b'{"v": 2, "query": "' + b"x" * 300_000)
    trajectories.append_trajectory(path, _episode("b"))
    assert [t.task for t in trajectories.read_trajectories(path)] == [FULL.task, "b"]
    assert path.stat().st_size < 5000


def test_a_complete_last_line_without_newline_stays(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    trajectories.append_trajectory(path, FULL)
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert list(trajectories.read_trajectories(path)) == [FULL]
    trajectories.append_trajectory(path, _episode("b"))
    assert [t.task for t in trajectories.read_trajectories(path)] == [FULL.task, "b"]


def test_broken_json_in_the_middle_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    trajectories.append_trajectory(path, FULL)
    with path.open("ab") as file:
        file.write(b'{"v": 2, "task"\n')
    with path.open("ab") as file:
        file.write(path.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(DataError, match=r"t\.jsonl, line 2, .*broken JSON.*; remove the line"):
        list(trajectories.read_trajectories(path))


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"v": 4}, "version 4, .* only 2 and 3: use the release that wrote the record"),
        ({"v": True}, "version True"),
        ({"task": "a"}, "no 'v', the schema version"),
        (
            {"v": 2, "task": "a", "index": 0, "query": "", "steps": "x"},
            "'steps' must be a list, not 'x'",
        ),
        ({"v": 2, "task": "a", "steps": []}, "no 'index'; found task, steps"),
        (
            {"v": 2, "task": "a", "index": 0, "query": "", "steps": [], "colour": 1},
            "'colour' is unknown: .*known: task, index",
        ),
        (
            {"v": 2, "task": "a", "index": 0, "query": "", "steps": [{"action": "x"}]},
            "'steps.0.' has no 'observation'; found action",
        ),
        ([1], "an object is expected"),
    ],
)
def test_other_json_is_refused(tmp_path: Path, row: object, complaint: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match=rf"line 1: .*{complaint}"):
        list(trajectories.read_trajectories(path))


def test_a_value_that_json_cannot_hold_is_refused_before_writing(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with pytest.raises(UsageError, match="starter/files/1"):
        trajectories.append_trajectory(path, FULL.replace(seconds=float("nan")))
    assert not path.exists()


def test_errors_and_branches_are_not_results() -> None:
    episodes = (
        _episode("a", end="error", error="endpoint down"),
        _episode("b", end="submitted"),
        _episode("c", end="error"),
        _episode("a", end="solved"),
        _episode("b", end="error", epoch=1),
        _episode("b", end="solved", epoch=2),
        _episode("c", end="solved", parent="x"),
    )
    assert [(t.task, t.epoch) for t in episodes if trajectories.has_result(t)] == [
        ("b", 0),
        ("a", 0),
        ("b", 2),
    ]


def test_many_threads_append_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(lambda n: trajectories.append_trajectory(path, _episode(f"t/{n}")), range(64))
        )
    assert {t.task for t in trajectories.read_trajectories(path)} == {f"t/{n}" for n in range(64)}


WRITER = """
import sys
from pathlib import Path
from intercode.core import trajectories
from intercode.core.types import Step, Trajectory
n = 0
while True:
    step = Step("x" * 200_000, "")
    trajectories.append_trajectory(Path(sys.argv[1]), Trajectory(f"t/{n}", n, "q", (step,)))
    print(n, flush=True)
    n += 1
"""


@pytest.mark.skipif(os.name != "posix", reason="kills a process with SIGKILL, which POSIX has")
def test_nothing_that_was_appended_is_lost_by_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    confirmed = 0
    for _ in range(2):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        for _ in range(3):
            writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        confirmed += 3 + len(writer.stdout.readlines())
        writer.wait()
    trajectories.append_trajectory(path, _episode("last"))
    tasks = [t.task for t in trajectories.read_trajectories(path)]
    assert tasks[-1] == "last"
    assert confirmed <= len(tasks) - 1 <= confirmed + 2


def test_a_directory_holds_one_run(tmp_path: Path) -> None:
    meta = {"dataset": "starter", "profile": "standard", "parallel": 8}
    trajectories.write_run_metadata(tmp_path, meta)
    trajectories.write_run_metadata(tmp_path, {**meta, "parallel": 1})
    assert trajectories.read_run_metadata(tmp_path) == {**meta, "parallel": 1}
    with pytest.raises(UsageError, match="profile 'standard', now 'original'"):
        trajectories.write_run_metadata(tmp_path, {**meta, "profile": "original"})
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


def test_missing_keys_of_early_releases_do_not_count_as_differences(tmp_path: Path) -> None:
    meta = {"dataset": "starter", "generation": {"temperature": 0}, "policy": None}
    old = {"dataset": "starter"}
    assert trajectories.identity_differences(old, meta) == []
    assert trajectories.identity_differences(meta, {**meta, "generation": {}}) == ["generation"]
    assert trajectories.identity_differences(old, {**meta, "policy": "allow ls"}) == ["policy"]


def test_a_missing_or_broken_run_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "run.json").write_text("{}")
    message = r"is no run: it has no run\.json; the last runs in it are mine"
    with pytest.raises(DataError, match=message):
        trajectories.read_run_metadata(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(DataError, match=r"run\.json, line 1, column 2: broken JSON"):
        trajectories.read_run_metadata(tmp_path)
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(DataError, match="an object is expected"):
        trajectories.read_run_metadata(tmp_path)
    for run, said in (("{}", "no 'v', the schema version"), ('{"v": 1}', "version 1, .* only 2")):
        (tmp_path / "run.json").write_text(run)
        with pytest.raises(DataError, match=rf"run\.json: .*{said}"):
            trajectories.read_run_metadata(tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a full device")
def test_a_full_disk_is_an_error_with_the_path(tmp_path: Path) -> None:
    log = tmp_path / trajectories.TRAJECTORIES_FILE
    log.symlink_to("/dev/full")
    episode = Trajectory("t", 0, "q", ())
    with pytest.raises(OSError, match=f"No space left on device: '{log}'"):
        trajectories.append_trajectory(log, episode)
