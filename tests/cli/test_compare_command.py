"""``intercode compare`` and ``intercode report --stats`` over the published logs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from intercode.cli import main

TRY, REACT = "ic_sql_multiturn_gpt-3.5_10_turns.json", "ic_sql_react_10_turns.json"


@pytest.fixture
def logs(recorded_dir: Path) -> list[str]:
    return [str(recorded_dir / "sql" / name) for name in (TRY, REACT)]


@pytest.mark.paper
@pytest.mark.slow
def test_it_prints_the_figures_of_a_paper(
    logs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *logs]) == 0
    text = capsys.readouterr().out
    for words in (
        "exact McNemar test of success: p = 2.7e-10",
        "11.41",
        "7.91",
        "14.87",
        "of 1034 tasks, B solves 234 more often than A, and A 116 more often than B.",
        "1034 tasks: if the true difference is 5.0 points of success, a comparison finds it with",
        "330 more: --all",
    ):
        assert words in text


@pytest.mark.paper
@pytest.mark.slow
def test_json(logs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *logs, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [s["agent"] for s in document["sides"]] == ["try-again", "react"]
    assert len(document["comparisons"][0]["flips"]) == 350


@pytest.mark.paper
@pytest.mark.slow
def test_transcripts(
    logs: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["compare", *logs, "--task", "spider/5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "not solved" in lines[3] and "solved at turn 6" in lines[3]
    assert max(map(len, lines)) <= 100


@pytest.mark.paper
def test_different_subsets_are_refused(
    recorded_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = [str(recorded_dir / "bash" / f"ic_bash_react_10_turns_fs_{n}.json") for n in (1, 3)]
    assert main(["compare", *logs]) == 2
    assert "To compare them anyway: --allow-mismatch subset" in capsys.readouterr().err
    assert main(["compare", *logs, "--allow-mismatch", "subset"]) == 2
    assert "no task in common" in capsys.readouterr().err


@pytest.mark.paper
@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--epoch", "1"], "name the task"),
        (["--task", "nl2bash/fs_3/5", "--json"], "leave --json out"),
        (["--task", "nl2bash/fs_3/55555"], "unknown task"),
        (["--allow-mismatch", "subst"], "did you mean 'subset'"),
        (["--task", "nl2bash/fs_3/5", "--epoch", "x"], "whole number"),
        (["--task", "nl2bash/fs_3/5", "--epoch", "3"], "A has no epoch 3"),
    ],
)
def test_mistakes_are_explained(
    recorded_dir: Path, words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("react_10_turns_fs_3", "plan_solve_fs_3")
    logs = [str(recorded_dir / "bash" / f"ic_bash_{name}.json") for name in names]
    assert main(["compare", *logs, *words]) == 2
    assert hint in capsys.readouterr().err


@pytest.mark.paper
def test_report_stats(recorded_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = str(recorded_dir / "ctf" / "ic_ctf_multiturn_gpt-4_10_turns.json")
    assert main(["report", log, "--stats", "--format", "json"]) == 0
    tables = {t["name"]: t for t in json.loads(capsys.readouterr().out)}
    rows = tables["statistics/ic-ctf/try-again/gpt-4"]["rows"]
    success = next(row for row in rows if row["figure"] == "success")
    assert success["value"] == pytest.approx(100 * 37 / 93)
    assert success["low"] == pytest.approx(30.4, abs=0.1)
    assert main(["report", log, "--format", "json"]) == 0
    assert "statistics" not in capsys.readouterr().out


@pytest.mark.paper
@pytest.mark.slow
@pytest.mark.parametrize("name", ["5", "spider/5"])
def test_a_task_is_named_as_for_show(
    logs: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *logs, "--task", name]) == 0
    assert capsys.readouterr().out.startswith("spider/5: ")
