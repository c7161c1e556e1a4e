"""Logs in every format: small ones written for the test, and the authors' published logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from intercode.core import trajectories
from intercode.core.errors import DataError, UsageError
from intercode.core.logs import find_logs, lacks_code, load_log, load_stability
from intercode.core.logs.formats import LOG_FORMATS, LogFormat, format_of
from intercode.core.types import Step, Trajectory
from intercode.paper.logs.authors import LogName, parse_log_name
from intercode.paper.logs.reference import split_reference_episodes

RETRY = "No SQL code was found in your last response.\n\nand so on"


def _history(**lists: list[Any]) -> dict[str, Any]:
    return {
        "environment": "ic_sql",
        "dataset": "./data/spider/dev_spider.json",
        "task_id": 7,
        "query": "how many?",
        "turn_history": lists,
        "summary": {"max_reward": 1.0, "turns_taken": len(lists["actions"]), "turns_max": 10},
        "hardness": "easy",
    }


def _write(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "ic_bash_multiturn_gpt-4_10_turns_fs_2.json",
            LogName("bash", "try-again", "gpt-4", 10, "fs_2"),
        ),
        (
            "ic_sql_multiturn_gpt-3.5-1_turns_handicap.json",
            LogName("sql", "single-turn", "gpt-3.5", 1, None, True),
        ),
        (
            "ic_bash_react_10_turns_fs_1.json",
            LogName("bash", "react", "gpt-3.5", 10, "fs_1"),
        ),
        ("ic_bash_plan_solve_fs_3.json", LogName("bash", "plan-solve", "gpt-3.5", None, "fs_3")),
        (
            "ic_sql_plan_solve_refine_3_turns.json",
            LogName("sql", "plan-solve-refine", "gpt-3.5"),
        ),
        ("ic_ctf_gpt-4_25_turns.json", LogName("ctf", "try-again", "gpt-4", 25)),
        ("ic_sql_multiturn_human_10_turns.json", LogName("sql", "human", "human", 10)),
        ("mine.json", LogName()),
    ],
)
def test_metadata_in_file_names(name: str, expected: LogName) -> None:
    assert parse_log_name(Path(name)) == expected


def test_turns_without_code_and_blocked_turns_are_not_executed(tmp_path: Path) -> None:
    log = _history(
        actions=["SELECT 1", "I think", "blocked"],
        observations=["[(1,)]", RETRY],
        rewards=[0.5, 0, 0],
        valid_action=[True, True],
    )
    (episode,) = load_log(_write(tmp_path / "mine.json", {"7": log}))
    assert [s.executed for s in episode.steps] == [True, False, False]
    assert [lacks_code(s) for s in episode.steps] == [False, True, False]
    assert [s.valid for s in episode.steps] == [True, True, None]
    assert (episode.task, episode.hardness, episode.end) == ("spider/7", "easy", "agent_stopped")
    assert episode.run["agent"] == "try-again"
    assert episode.run["turns_taken"] == 3


def test_react_has_thoughts_and_does_not_count_a_forced_submit(tmp_path: Path) -> None:
    log = _history(
        thoughts=["look", "hm", "out of turns"],
        actions=["execute[SELECT 1]", "no idea", "submit"],
        observations=[
            "[(1,)]",
            "Error executing query: Your last `execute` action did not contain sql code",
            "[(1,)]",
        ],
        rewards=[0, 0, 1.0],
        valid_action=[True, True, True],
    )
    log["summary"]["turns_taken"] = 2
    (episode,) = load_log(_write(tmp_path / "ic_sql_react_10_turns.json", {"7": log}))
    assert [s.thought for s in episode.steps] == ["look", "hm", "out of turns"]
    assert [s.executed for s in episode.steps] == [True, False, True]
    assert episode.run["agent"] == "react"
    assert (episode.turns, episode.run["turns_taken"], episode.end) == (3, 2, "solved")


def test_plan_and_solve_is_read_with_and_without_its_wrapper(tmp_path: Path) -> None:
    log = _history(
        actions=["SELECT 1"],
        observations=["[(1,)]"],
        rewards=[0.2],
        steps=["count them"],
        valid_action=[True],
    )
    bare = load_log(_write(tmp_path / "a.json", {"7": log}))
    wrapped = load_log(_write(tmp_path / "b.json", {"meta": {}, "logs": {"7": log}}))
    assert bare[0].steps == wrapped[0].steps
    assert bare[0].steps[0].thought == "count them"
    assert bare[0].run["agent"] == "plan-solve"


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ({}, "no episodes"),
        ({"3": {"query": "q"}}, "episode '3'.*turn_history"),
        ({"3": 5}, "episode '3'"),
        ([], "a list of steps"),
        ([{"fs": 1}], "row 0 lacks"),
        ("text", "holds a str"),
    ],
)
def test_other_json_is_refused_with_the_file(
    tmp_path: Path, document: object, complaint: str
) -> None:
    path = _write(tmp_path / "log.json", document)
    with pytest.raises(DataError, match=rf"(?s)log\.json.*{complaint}"):
        load_log(path)


def test_broken_json_is_refused_with_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text('{\n"1": {\n"query": }}')
    with pytest.raises(DataError, match=r"log\.json, line 3"):
        load_log(path)
    path.write_bytes(b'{"\xff": 1}')
    with pytest.raises(DataError, match=r"log\.json, line 1: JSON that cannot be read: 'utf-8'"):
        load_log(path)
    with pytest.raises(DataError, match=r"cannot read .*none\.json"):
        load_log(tmp_path / "none.json")


def test_every_episode_has_the_metadata_of_its_run(tmp_path: Path) -> None:
    run = tmp_path / "out" / "one"
    trajectories.write_run_metadata(
        run, {"dataset": "starter", "agent": "gold", "profile": "standard"}
    )
    episode = Trajectory("a", 0, "q", (Step("ls", ""),), run={"agent": "noop"})
    trajectories.append_trajectory(run / "trajectories.jsonl", episode)
    for path in (run, run / "trajectories.jsonl", run / "run.json"):
        (read,) = load_log(path)
        assert (read.run["dataset"], read.run["agent"]) == ("starter", "noop")
        assert find_logs([path]) == [run]
    (tmp_path / "out" / "more.json").write_text("[]")
    assert find_logs([tmp_path, run]) == [tmp_path / "out" / "more.json", run]
    (tmp_path / "README.txt").touch()
    assert find_logs([run, tmp_path / "README.txt"]) == [run]
    with pytest.raises(UsageError, match="no such file"):
        find_logs([tmp_path / "gone"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no logs below"):
        find_logs([tmp_path / "empty"])
    with pytest.raises(DataError, match="is not a run directory"):
        load_log(tmp_path / "empty")


# Counts of turns without code were taken from the files by their messages; episodes and solved
# tasks are the paper's.
RECORDED = {
    "bash/ic_bash_multiturn_gpt-3.5_10_turns_fs_1": (60, 27, 380, 0),
    "bash/ic_bash_multiturn_gpt-4_10_turns_fs_2": (53, 25, 310, 0),
    "bash/ic_bash_react_10_turns_fs_1": (60, 13, 290, 20),
    "bash/ic_bash_plan_solve_fs_3": (60, 26, 418, 0),
    "ctf/ic_ctf_multiturn_gpt-4_10_turns": (93, 37, 634, 0),
    "python/ic_python_multiturn_gpt-3.5_7_turns": (117, 69, 430, 0),
    "sql/ic_sql_multiturn_human_10_turns": (15, 13, 112, 0),
    "sql/ic_sql_plan_solve": (1034, 508, 4436, 150),
    "sql/ic_sql_react_10_turns": (1034, 607, 5551, 303),
    "sql/ic_sql_multiturn_gpt-3.5_10_turns": (1034, 489, 7499, 234),
}


@pytest.mark.parametrize("name", RECORDED)
def test_the_published_logs_are_read_completely(recorded_dir: Path, name: str) -> None:
    episodes = load_log(recorded_dir / f"{name}.json")
    steps = [s for t in episodes for s in t.steps]
    found = (len(episodes), sum(t.success for t in episodes), len(steps))
    assert (*found, sum(lacks_code(s) for s in steps)) == RECORDED[name]
    assert len({t.task for t in episodes}) == len(episodes)


def test_every_recorded_reward_is_the_summarys(recorded_dir: Path) -> None:
    for path in find_logs([recorded_dir]):
        document = json.loads(path.read_text())
        rows = document.get("logs", document) if "meta" in document else document
        for row, episode in zip(rows.values(), load_log(path), strict=True):
            best = row["summary"]["max_reward"] if "summary" in row else row["reward"]
            assert episode.score == best, (path.name, episode.task)


def test_reference_rows_are_the_executed_steps_of_the_log(
    recorded_dir: Path, reference_dir: Path
) -> None:
    path = reference_dir / "bash" / "gpt-4_2.json"
    again, rows = load_log(path), split_reference_episodes(json.loads(path.read_text()), path)
    log = load_log(recorded_dir / "bash" / "ic_bash_multiturn_gpt-4_10_turns_fs_2.json")
    assert [t.task for t in again] == [t.task for t in log]
    for episode, reference, recorded in zip(again, rows, log, strict=True):
        actions = [s.action for s in recorded.steps if s.executed]
        assert [s.action for s in episode.steps] == actions == [r["action"] for r in reference]
        assert all("gold_obs" in r and "stable" in r for r in reference)
    assert load_stability(path) == [[r["stable"] for r in episode] for episode in rows]


def test_a_plug_in_reads_its_own_documents_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if its name comes before that of the format that it would take the logs of, or after."""
    own: dict[str, Any] = {"acme": 1, "episodes": []}
    authors = {"0": {"turn_history": {}, "summary": {}}}
    for name in ("acme", "zeta"):
        plug_in = LogFormat(dict, "acme", lambda *_: [], lambda document: "acme" in document)
        formats = {name: plug_in, "authors": LOG_FORMATS.load("authors")}
        monkeypatch.setattr("intercode.core.logs.formats.LOG_FORMATS", Formats(formats))
        assert format_of(own) is plug_in
        assert format_of(authors) is formats["authors"]
        assert format_of([]) is None


class Formats(dict[str, LogFormat]):
    """Formats in the order of their names, as the registry has those of plug-ins."""

    def load(self, name: str) -> LogFormat:
        return self[name]
