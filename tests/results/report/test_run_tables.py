"""Tables of our own runs: which episodes may share a cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pytest import approx

from intercode.core import trajectories
from intercode.core.errors import DataError
from intercode.core.types import Score, Step, Trajectory
from intercode.results import report
from intercode.results.tables import Table

META: dict[str, Any] = {
    "environment": "bash",
    "dataset": "nl2bash",
    "dataset_hash": "aaaaaaaabbbb",
    "profile": "standard",
    "scoring": "1",
    "image": "nl2bash",
    "image_digest": "sha256:0123456789abcdef",
    "arch": "x86_64",
    "tier": "namespace",
    "agent": "try-again",
    "model": "m",
    "comparable": True,
}
LABEL = "nl2bash#aaaaaaaa, standard 1, nl2bash@0123456789ab, x86_64, namespace"


def _run(directory: Path, rewards: dict[str, list[float]], **meta: Any) -> Path:
    """Write a run directory; ``rewards`` maps ``group/number`` to the reward of each turn."""
    trajectories.write_run_metadata(directory, {**META, **meta})
    for n, (task, values) in enumerate(rewards.items()):
        steps = tuple(Step("x", "y", score=Score(v)) for v in values)
        group = task.partition("/")[0]
        episode = Trajectory(f"nl2bash/{task}", n, "q", steps, end="turn_limit", group=group)
        trajectories.append_trajectory(directory / "trajectories.jsonl", episode)
    return directory


def _build(*paths: Path) -> dict[str, Table]:
    return {t.name: t for t in report.build(paths)}


ALL = {"fs_1/0": [0.0, 1.0], "fs_2/0": [1.0], "fs_3/0": [0.5, 0.2], "fs_4/0": [0.1]}


@pytest.mark.paper
def test_a_run_gets_the_papers_table_and_its_own(tmp_path: Path) -> None:
    tables = _build(_run(tmp_path / "r", ALL))
    paper, own = tables["nl2bash-success"], tables["nl2bash"]
    assert paper.rows == (("m", LABEL, 0.0, 100.0, 0.0, 0.0, 25.0, 100.0, 100.0, 0.0, 0.0, 50.0),)
    assert any("1 of 60 tasks of fs_1" in n for n in paper.notes)
    assert own.columns[3:] == (
        "success",
        "low",
        "high",
        "first turn",
        "turns",
        "error %",
        "tasks",
        "errors",
    )
    assert own.rows[0][3:] == (
        50.0,
        approx(15.0, abs=0.1),
        approx(85.0, abs=0.1),
        25.0,
        1.5,
        0.0,
        4,
        0,
    )
    solved = Trajectory("t", 0, "q", (Step("x", "y", score=Score(1.0)),), end="solved")
    trajectories.write_run_metadata(tmp_path / "one", META)
    trajectories.append_trajectory(tmp_path / "one" / "trajectories.jsonl", solved)
    at_once = _build(tmp_path / "one")["nl2bash"]
    assert at_once.rows[0][at_once.columns.index("first turn")] == 100.0
    groups = tables["nl2bash/groups"]
    assert groups.columns[3:] == ("fs_1", "fs_2", "fs_3", "fs_4")
    assert groups.rows[0][3:] == (100.0, 100.0, 0.0, 0.0)


@pytest.mark.paper
def test_runs_under_other_conditions_never_share_a_row(tmp_path: Path) -> None:
    runs = [
        _run(tmp_path / "a", {"fs_1/0": [1.0]}),
        _run(tmp_path / "b", {"fs_1/1": [0.0]}, profile="original"),
        _run(tmp_path / "c", {"fs_1/2": [0.0]}, image_digest="sha256:ffff"),
        _run(tmp_path / "d", {"fs_1/3": [0.0]}, dataset_hash="cccc"),
        _run(tmp_path / "e", {"fs_1/4": [0.0]}, tier="local", comparable=False),
        _run(tmp_path / "f", {"fs_1/5": [0.0]}),
    ]
    tables = _build(*runs)
    for name in ("nl2bash-success", "nl2bash", "strategies"):
        column = tables[name].columns.index("conditions")
        labels = [row[column] for row in tables[name].rows]
        assert len(labels) == len(set(labels)) == 6
        assert any("must not be compared" in n for n in tables[name].notes)
    assert tables["nl2bash"].cell("success", conditions=LABEL) == 100.0
    assert any(str(row[2]).endswith("not comparable") for row in tables["nl2bash"].rows)
    assert any(n.startswith("not comparable") for n in tables["nl2bash"].notes)


@pytest.mark.paper
def test_single_turn_and_try_again_of_one_model_share_a_row(tmp_path: Path) -> None:
    single = _run(tmp_path / "s", {"fs_1/0": [1.0]}, agent="single-turn")
    table = _build(single, _run(tmp_path / "t", {"fs_1/0": [0.0, 0.5]}))["nl2bash-success"]
    assert len(table.rows) == 1
    assert table.cell("Single fs_1") == 100.0
    assert table.cell("Try fs_1") == 0.0
    assert table.cell("Try all") is None


@pytest.mark.paper
def test_the_verified_subset_leads(tmp_path: Path) -> None:
    full = _run(tmp_path / "a", ALL)
    verified = _run(tmp_path / "b", ALL, dataset="nl2bash:verified", dataset_hash="dddd")
    starter = _run(tmp_path / "c", ALL, dataset="starter", agent="gold")
    names = [t.name for t in report.build([full, verified, starter])]
    expected = [
        "nl2bash:verified",
        "nl2bash:verified/groups",
        "nl2bash-success",
        "strategies",
        "nl2bash",
        "nl2bash/groups",
        "starter",
        "starter/groups",
    ]
    assert names == expected


@pytest.mark.paper
def test_failed_episodes_count_as_not_solved_and_have_a_bound(tmp_path: Path) -> None:
    run = _run(tmp_path / "a", ALL)
    log = run / "trajectories.jsonl"
    for task in ("nl2bash/fs_1/0", "nl2bash/fs_1/9"):
        failed = Trajectory(task, 9, "q", (), end="error", error="lost", group="fs_1")
        trajectories.append_trajectory(log, failed)
    tables = _build(run)
    table = tables["nl2bash"]
    assert table.rows[0][-2:] == (5, 1)
    assert (table.cell("success"), table.cell("upper bound")) == (40.0, 60.0)
    assert tables["nl2bash/groups"].cell("fs_1") == 50.0
    assert any("not solved): 1; success is at most 60.0 %" in n for n in table.notes)
    for name in ("nl2bash-success", "strategies"):
        assert any("at most 60.0 %" in n for n in _build(run)[name].notes)


def test_a_run_that_is_not_finished_says_how_much_is_left(tmp_path: Path) -> None:
    run = _run(tmp_path / "a", ALL)
    history = run / trajectories.HISTORY_FILE
    notes = []
    for tasks in (4, 5):
        history.write_text(f'{{"began": "now", "tasks": {tasks}, "epochs": 2}}\n{{"ended": ')
        notes.append([n for n in report.build([run])[0].notes if "not finished" in n])
    history.write_text('{"tasks": 5}\n[1]\n{"tas\n{"began": "now", "tasks": 4, "epochs": 1}\n')
    assert not any("not finished" in n for t in report.build([run]) for n in t.notes)
    assert [n.partition("; ")[0] for same in notes for n in same] == [
        f"{run} is not finished: 4 of {planned} episodes are played" for planned in (8, 10)
    ]


def test_a_model_with_few_actions_gets_a_note(tmp_path: Path) -> None:
    directory = tmp_path / "a"
    trajectories.write_run_metadata(directory, {**META, "agent": "tool-calling"})
    log = directory / "trajectories.jsonl"
    for n, executed in enumerate((False, True)):
        steps = (Step("ls" if executed else "", "no call", executed=executed),)
        trajectories.append_trajectory(log, Trajectory(f"t{n}", n, "q", steps, end="turn_limit"))
        notes = [note for t in report.build([directory]) for note in t.notes]
        share = "50 % of the answers" if executed else "no answer"
        assert any(f"{share} of the model had" in note for note in notes)
    for n in range(2, 4):
        trajectories.append_trajectory(
            log, Trajectory(f"t{n}", n, "q", (Step("ls", ""),), end="turn_limit")
        )
    notes = [note for t in report.build([directory]) for note in t.notes]
    assert not any("of the model had" in note for note in notes)  # a quarter


@pytest.mark.parametrize(
    ("reason", "hinted"), [("the answer calls no tool", True), ("it is marked as bash", False)]
)
def test_the_note_on_answers_without_an_action_says_why(
    reason: str, hinted: bool, tmp_path: Path
) -> None:
    trajectories.write_run_metadata(tmp_path / "a", META)
    step = Step(
        "", f"Nothing was run: {reason}. Answer with code.", executed=False, score=Score(0.0)
    )
    episode = Trajectory("t", 0, "q", (step, step), end="turn_limit")
    trajectories.append_trajectory(tmp_path / "a" / "trajectories.jsonl", episode)
    notes = [note for table in report.build([tmp_path / "a"]) for note in table.notes]
    (note,) = (n for n in notes if "had an action" in n)
    assert f"(Nothing was run: {reason})" in note and ("try-again." in note) is hinted


def test_the_last_words_of_a_program_are_no_answer_without_an_action(tmp_path: Path) -> None:
    trajectories.write_run_metadata(tmp_path / "a", META)
    steps = (Step("ls", ""), Step("", "", executed=False))
    episode = Trajectory("t", 0, "q", steps, end="submitted")
    trajectories.append_trajectory(tmp_path / "a" / "trajectories.jsonl", episode)
    notes = [note for table in report.build([tmp_path / "a"]) for note in table.notes]
    assert not any("of the model had" in note for note in notes)


def test_an_agent_that_kills_half_its_episodes_has_half_the_rate(tmp_path: Path) -> None:
    solved = {f"fs_1/{n}": [1.0] for n in range(3)}
    run = _run(tmp_path / "a", solved, agent="react")
    for n in range(3, 6):
        lost = Trajectory(f"nl2bash/fs_1/{n}", n, "q", (), end="error", error="lost", group="fs_1")
        trajectories.append_trajectory(run / "trajectories.jsonl", lost)
    for style in report.RENDERERS:
        text = report.render(report.build([run], stats=True), style)
        assert "50.0" in text and "upper bound" in text, style
        assert style == "csv" or "at most 100.0" in text, style  # CSV has no notes
    tables = {t.name: t for t in report.build([run], stats=True)}
    assert tables["nl2bash"].cell("success") == 50.0
    assert tables["nl2bash"].cell("upper bound") == 100.0
    figures = tables["statistics/nl2bash/react/m"]
    assert figures.cell("value", figure="success") == 50.0
    assert figures.cell("value", figure="success, upper bound") == 100.0
    assert figures.cell("value", figure="best score") == 0.5
    assert figures.cell("value", figure="turns") == 1.0  # of the completed episodes
    assert tables["splits/nl2bash/react/m"].cell("value", by="fs_1") == 50.0
    assert tables["by-turn/nl2bash/react/m"].cell("value", turns=1) == 50.0


def test_a_report_without_errors_has_no_column_for_their_bound(tmp_path: Path) -> None:
    assert "upper bound" not in report.render(
        report.build([_run(tmp_path / "a", ALL)], stats=True), "json"
    )


def test_a_group_named_as_a_column_does_not_hide_it(tmp_path: Path) -> None:
    run = _run(tmp_path / "a", {"model/0": [1.0], "text/0": [0.0]}, dataset="mine.jsonl")
    table = _build(run)["mine.jsonl/groups"]
    assert (table.cell("group model"), table.cell("text"), table.cell("model")) == (100.0, 0.0, "m")


@pytest.mark.paper
def test_runs_beside_published_logs(tmp_path: Path, recorded_dir: Path) -> None:
    log = recorded_dir / "bash" / "ic_bash_multiturn_gpt-4_10_turns_fs_2.json"
    run = _run(tmp_path / "a", {"fs_2/0": [1.0]}, model="gpt-4", dataset="nl2bash:fs_2")
    table = _build(log, run)["nl2bash-success"]
    assert len(table.rows) == 2
    assert table.cell("Try fs_2", conditions="published") == 100 * 25 / 53


def test_rows_with_equal_labels_name_the_settings_that_differ(tmp_path: Path) -> None:
    cold = _run(tmp_path / "a", {"fs_1/0": [1.0]}, generation={"temperature": 0.0}, max_turns=5)
    warm = _run(tmp_path / "b", {"fs_1/0": [0.0]}, generation={"temperature": 0.7}, max_turns=5)
    again = _run(tmp_path / "c", {"fs_1/0": [0.0]}, generation={"temperature": 0.7}, max_turns=5)
    table = _build(cold, warm, again)["nl2bash"]
    assert [row[2] for row in table.rows] == [
        f"{LABEL}, temperature = 0.0",
        f"{LABEL}, temperature = 0.7",
        f"{LABEL}, temperature = 0.7, from {again}",
    ]
    assert not any("side by side" in note for note in table.notes)  # the conditions are the same


def test_a_reward_a_policy_and_determinism_are_conditions(tmp_path: Path) -> None:
    runs = [
        _run(tmp_path / "a", {"fs_1/0": [1.0]}, reward="bash-standard"),
        _run(tmp_path / "b", {"fs_1/0": [1.0]}, reward="mine:strict", agent="react"),
        _run(tmp_path / "c", {"fs_1/0": [1.0]}, policy={"digest": "abcdef012345"}, agent="noop"),
        _run(tmp_path / "d", {"fs_1/0": [1.0]}, determinism={"clock": "x"}, agent="gold"),
    ]
    table = _build(*runs)["nl2bash"]
    more = ["", ", reward mine:strict", ", policy abcdef01", ", deterministic"]
    assert [row[2] for row in table.rows] == [LABEL + text for text in more]
    assert any("must not be compared" in note for note in table.notes)


@pytest.mark.paper
def test_epochs_are_episodes_and_no_further_tasks(tmp_path: Path) -> None:
    run = _run(tmp_path / "a", {"fs_1/0": [1.0], "fs_1/1": [0.0]})
    (extra,) = [
        t for t in trajectories.read_trajectories(run / "trajectories.jsonl") if t.index == 0
    ]
    trajectories.append_trajectory(run / "trajectories.jsonl", extra.replace(epoch=1))
    tables = _build(run)
    own = tables["nl2bash"]
    assert own.columns[-3:] == ("tasks", "episodes", "errors") and own.rows[0][-3:] == (2, 3, 0)
    assert tables["strategies"].cell("tasks", agent="try-again") == 2


def test_a_half_written_line_is_named(tmp_path: Path) -> None:
    torn, whole = _run(tmp_path / "torn", ALL), _run(tmp_path / "whole", ALL)
    with (torn / trajectories.TRAJECTORIES_FILE).open("a") as file:
        file.write('{"v": 2, "task": "nl2b')
    notes = [note for table in report.build([torn, whole]) for note in table.notes]
    assert [n for n in notes if "last line is incomplete" in n] == [
        f"{torn}: the last line is incomplete and left out; the process that wrote it was killed, "
        "or is writing. Resuming the run plays that episode again."
    ]
    log = torn / trajectories.TRAJECTORIES_FILE
    log.write_text(log.read_text().splitlines()[-1])
    assert "the last line is incomplete" in report.render(report.build([torn]))


@pytest.mark.parametrize(
    ("rewards", "first_turn", "only_at_end"),
    [
        ([0.0, 0.0, 0.0], 0.0, False),  # try-again
        ([None, None, 0.0], None, True),  # react
        ([0.0], 0.0, False),  # single-turn
        ([1.0], 100.0, False),
    ],
)
def test_the_steps_of_a_run_tell_whether_every_turn_is_scored(
    tmp_path: Path, rewards: list[Any], first_turn: float | None, only_at_end: bool
) -> None:
    run = _run(tmp_path / "r", {"fs_1/0": rewards})
    tables = {t.name: t for t in report.build([run], stats=True)}
    table = tables["nl2bash"]
    shown = table.cell("first turn") if "first turn" in table.columns else None
    assert shown == first_turn
    notes = tables["by-turn/nl2bash/try-again/m"].notes
    assert any("at the end of an episode only" in note for note in notes) is only_at_end


def test_a_submission_at_once_is_not_the_first_of_scored_turns(tmp_path: Path) -> None:
    trajectories.write_run_metadata(tmp_path / "r", META)
    step = Step("submit", "y", score=Score(0.0))
    trajectories.append_trajectory(
        tmp_path / "r" / "trajectories.jsonl", Trajectory("t", 0, "q", (step,), end="submitted")
    )
    assert "first turn" not in _build(tmp_path / "r")["nl2bash"].columns


def test_a_file_that_is_no_log_is_left_out_of_a_directory(tmp_path: Path) -> None:
    run = _run(tmp_path / "run", ALL)
    export = tmp_path / "train.jsonl"
    export.write_text('{"messages": []}\n{"messages": []}\n')
    tables = report.build([tmp_path])
    assert f"left out: {export}: no log of episodes." in tables[0].notes
    assert [t.rows for t in tables] == [t.rows for t in report.build([run])]
    with pytest.raises(DataError, match="no 'v'"):
        report.build([run, export])


def test_a_table_by_hardness_says_so_and_why_it_is_not_comparable(tmp_path: Path) -> None:
    run = tmp_path / "run"
    meta = {**META, "environment": "sql", "dataset": "mine", "comparable": False}
    trajectories.write_run_metadata(run, {k: v for k, v in meta.items() if "image" not in k})
    for n, hardness in enumerate(("easy", "hard")):
        episode = Trajectory(
            f"t{n}", n, "q", (Step("x", "y", score=Score(1.0)),), hardness=hardness
        )
        trajectories.append_trajectory(run / "trajectories.jsonl", episode)
    tables = _build(run)
    assert tables["mine/groups"].title == "mine: success by hardness, %"
    assert any("not pinned" in note for note in tables["mine"].notes)
