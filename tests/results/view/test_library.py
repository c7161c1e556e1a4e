"""The data of the page: indexes that grow with their files, and episodes read by their offsets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from intercode.core import logs, trajectories
from intercode.core.errors import UsageError
from intercode.results.statistics.metrics import success_rate
from intercode.results.view import Library
from support.view_runs import FACTS, plain_episode, write_run


def rows(library: Library, run: int = 0) -> list[dict[str, Any]]:
    index = library.index()
    return [dict(zip(index["fields"], r, strict=True)) for r in index["runs"][run]["rows"]]


def test_a_row_has_the_fields_of_lists_and_filters(tmp_path: Path) -> None:
    found = {r["id"]: r for r in rows(Library([write_run(tmp_path / "a")]))}
    rich = found["r0"]
    assert rich["success"] and rich["reward"] == 1.0 and rich["turns"] == 7
    assert (rich["refused"], rich["human"], rich["timed_out"], rich["cut"]) == (1, 1, 1, 1)
    assert rich["invalid"] == 3  # refused, timed out, without code
    assert (rich["agent"], rich["model"], rich["attempts"]) == ("react", "m-1", 2)
    assert rich["tags"] == ["read"] and not rich["replaced"]
    assert found["lost"]["replaced"] and found["lost"]["error"] == "the sandbox went away"
    assert found["p3"]["prompt_tokens"] is None  # nothing was recorded, which is not zero


def test_branches_follow_the_episode_that_they_came_from(tmp_path: Path) -> None:
    library = Library([write_run(tmp_path / "a")])
    order = [(r["id"], r["depth"]) for r in rows(library)]
    assert order[:4] == [("lost", 0), ("r0", 0), ("fork", 1), ("r0e1", 0)]
    log = tmp_path / "a" / trajectories.TRAJECTORIES_FILE
    one = plain_episode(90, True, {})
    trajectories.append_trajectory(log, one.replace(id="x", parent="y"))
    trajectories.append_trajectory(log, one.replace(id="y", parent="x"))
    library.refresh()
    assert {("x", 0), ("y", 0)} <= {(r["id"], r["depth"]) for r in rows(library)}


def test_figures_are_those_of_the_report(tmp_path: Path) -> None:
    summary = Library([write_run(tmp_path / "a")]).index()["runs"][0]["summary"]
    assert (summary["episodes"], summary["counted"], summary["tasks"]) == (15, 13, 12)
    assert (summary["solved"], summary["errors"]) == (4, 0)  # tasks 0 (one of two), 3, 6 and 9
    assert summary["success"] == pytest.approx(100 * 4 / 13)
    assert summary["low"] < summary["success"] < summary["high"]
    # the episode's own tokens, not counted again for the branch that shares its first turn
    assert (summary["prompt_tokens"], summary["completion_tokens"]) == (1200, 85)
    assert summary["cost"] == 0.0021


def test_an_episode_is_sent_in_full_and_once(tmp_path: Path) -> None:
    library = Library([write_run(tmp_path / "a"), write_run(tmp_path / "b", model="m-2")])
    episode = library.episode(1, 1)
    assert episode["id"] == "r0" and len(episode["steps"]) == 7
    assert episode["steps"][0]["messages"][2]["tool_calls"][0]["function"]["name"] == "bash"
    assert episode["run"] == {"attempts": 2}  # the other metadata are the run's
    assert library.index()["runs"][1]["metadata"]["model"] == "m-2"
    for run, at in ((2, 0), (-1, 0), (0, 99), (0, -1)):
        with pytest.raises(UsageError, match="no "):
            library.episode(run, at)


def test_new_episodes_of_a_running_evaluation_appear_after_a_refresh(tmp_path: Path) -> None:
    library = Library([tmp_path / "runs"] if write_run(tmp_path / "runs" / "b") else [])
    log = tmp_path / "runs" / "b" / trajectories.TRAJECTORIES_FILE
    assert len(rows(library)) == 15
    trajectories.append_trajectory(
        log, plain_episode(50, True, dict(FACTS)).replace(task="starter/new/50")
    )
    with log.open("ab") as file:
        file.write(b'{"v": 2, "task": "torn')  # still being written
    write_run(tmp_path / "runs" / "a")
    library.refresh()
    index = library.index()
    assert [run["name"] for run in index["runs"]] == ["b", "a"]  # the order of the runs is kept
    assert index["runs"][0]["problems"] == []
    assert len(rows(library)) == 16
    assert library.episode(0, 15)["task"] == "starter/new/50"


def test_a_replaced_file_is_read_again(tmp_path: Path) -> None:
    write_run(tmp_path / "a")
    library = Library([tmp_path / "a"])
    log = tmp_path / "a" / trajectories.TRAJECTORIES_FILE
    log.unlink()
    library.refresh()
    assert rows(library) == []
    trajectories.append_trajectory(log, plain_episode(7, True, dict(FACTS)))
    library.refresh()
    assert [r["id"] for r in rows(library)] == ["p7"]


def test_a_line_that_cannot_be_read_is_a_problem_and_the_others_are_shown(tmp_path: Path) -> None:
    write_run(tmp_path / "a")
    log = tmp_path / "a" / trajectories.TRAJECTORIES_FILE
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([lines[0], b"{broken\n", b'{"v": 9}\n', *lines[1:]]))
    library = Library([tmp_path / "a"])
    problems = library.index()["runs"][0]["problems"]
    assert len(rows(library)) == 15
    assert problems[0].startswith("line 2 cannot be read: invalid JSON")
    assert problems[1].startswith("line 3 cannot be read: schema version 9")
    assert library.episode(0, 1)["id"] == "r0"


def test_a_broken_run_json_is_a_problem(tmp_path: Path) -> None:
    write_run(tmp_path / "a")
    (tmp_path / "a" / trajectories.RUN_FILE).write_text("{", encoding="utf-8")
    library = Library([tmp_path / "a"])
    library.refresh()
    run = library.index()["runs"][0]
    assert len(run["rows"]) == 15 and run["metadata"]["agent"] == "react"
    assert len(run["problems"]) == 1 and "run.json, line 1" in run["problems"][0]


def test_a_search_covers_queries_actions_outputs_and_messages(tmp_path: Path) -> None:
    library = Library([write_run(tmp_path / "a")])
    assert library.search("NEEDLE-7") == [[10]]
    assert library.search("you act in turns") == [[1, 2]]
    assert library.search("/srv/b") == [[1, 2]]
    assert library.search("nowhere to be found") == [[]]


@pytest.mark.paper
def test_published_logs_can_be_viewed(recorded_dir: Path) -> None:
    path = recorded_dir / "bash" / "ic_bash_react_10_turns_fs_1.json"
    library = Library([path])
    run = library.index()["runs"][0]
    episodes = logs.load_log(path)
    assert run["metadata"]["agent"] == "react" and len(run["rows"]) == len(episodes)
    assert run["summary"]["success"] == pytest.approx(success_rate(episodes))
    detail = library.episode(0, 3)
    assert [s["action"] for s in detail["steps"]] == [s.action for s in episodes[3].steps]
    assert json.dumps(detail, allow_nan=False)


def test_a_broken_published_log_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text("{", encoding="utf-8")
    run = Library([tmp_path / "log.json"]).index()["runs"][0]
    assert run["rows"] == [] and "broken JSON" in run["problems"][0]


def test_runs_have_the_shortest_unambiguous_names(tmp_path: Path) -> None:
    for name in ("x/run", "y/run", "z"):
        write_run(tmp_path / name)
    names = [run["name"] for run in Library([tmp_path]).index()["runs"]]
    assert names == ["x/run", "y/run", "z"]


def test_errors_count_as_not_solved_in_the_figures_of_a_run(tmp_path: Path) -> None:
    write_run(tmp_path / "a")
    log = tmp_path / "a" / trajectories.TRAJECTORIES_FILE
    before = Library([tmp_path / "a"]).index()["runs"][0]["summary"]
    assert "upper_bound" not in before
    for n in range(before["counted"]):
        lost = plain_episode(1000 + n, True, dict(FACTS)).replace(end="error", error="lost")
        trajectories.append_trajectory(log, lost)
    summary = Library([tmp_path / "a"]).index()["runs"][0]["summary"]
    assert summary["counted"] == 2 * before["counted"] and summary["errors"] == before["counted"]
    assert summary["success"] == pytest.approx(before["success"] / 2)
    assert summary["upper_bound"] == pytest.approx(50 + before["success"] / 2)
    assert summary["turns"] == before["turns"]


def test_the_version_changes_with_the_episodes(tmp_path: Path) -> None:
    log = write_run(tmp_path / "a") / trajectories.TRAJECTORIES_FILE
    library = Library([tmp_path])
    first = library.state()["version"]
    library.refresh()
    assert library.state()["version"] == first == library.index()["version"]
    trajectories.append_trajectory(log, plain_episode(40, True, dict(FACTS)))
    library.refresh()
    second = library.state()["version"]
    log.unlink()
    library.refresh()
    third = library.state()["version"]
    library.refresh()
    assert len({first, second, third}) == 3 and library.state()["version"] == third


def test_a_library_with_a_step_reads_on_with_each_refresh(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / "a"), write_run(tmp_path / "b", model="m-2")]
    whole, library = Library(paths), Library(paths, step=1)
    assert (library.state()["episodes"], whole.state()["pending"]) == (2, 0)  # one of each run
    sizes = sum((path / trajectories.TRAJECTORIES_FILE).stat().st_size for path in paths)
    pending = [sizes]
    while pending[-1]:
        pending.append(library.state()["pending"])
        runs = library.index()["runs"]
        assert pending[-1] < pending[-2] and len(runs) == 2
        assert sum(run["pending"] for run in runs) == pending[-1]
        library.refresh()
    assert len(pending) > 10 and library.index()["runs"] == whole.index()["runs"]


def test_a_run_that_is_read_in_part_has_no_figures(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / "a"), write_run(tmp_path / "b", model="m-2")]
    whole, library = Library(paths), Library(paths, step=1)
    for run in library.index()["runs"]:
        assert run["pending"] > 0 and len(run["rows"]) == run["summary"]["episodes"] == 1
        figures = [run["summary"][name] for name in ("success", "low", "high", "turns", "cost")]
        assert figures == [None] * 5
    assert library.success_test(0, 1) is None and whole.success_test(0, 1) is not None
    assert library.episode(0, 14) == whole.episode(0, 14)  # is read when it is asked for
    assert library.index()["runs"][0] == whole.index()["runs"][0]
    with pytest.raises(UsageError, match="no episode 99: it has 15"):
        library.episode(1, 99)
    assert library.success_test(0, 1) == whole.success_test(0, 1)


def test_runs_that_fit_in_one_step_are_read_at_once(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / "a"), write_run(tmp_path / "b")]
    log = tmp_path / "a" / trajectories.TRAJECTORIES_FILE
    log.write_bytes(log.read_bytes() * 9)
    sizes = sum((path / trajectories.TRAJECTORIES_FILE).stat().st_size for path in paths)
    assert Library(paths, step=sizes).index() == Library(paths).index()
