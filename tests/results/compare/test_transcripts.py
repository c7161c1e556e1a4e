"""Transcripts side by side, safe for a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from intercode.core.errors import UnknownNameError, UsageError
from intercode.core.types import Score, Step, Trajectory
from intercode.results.compare.comparison import Side
from intercode.results.compare.transcripts import MAX_OBSERVATION_LINES, side_by_side
from intercode.results.report.result_sets import ResultSet


def side(letter: str, *plays: Trajectory) -> Side:
    entry = ResultSet("bash", "mine", "react", "m", "published", "authors", Path(letter), plays)
    return Side(letter, Path(letter), entry)


def play(*steps: Step, task: str = "t", epoch: int = 0) -> Trajectory:
    run = {"environment": "bash"}
    return Trajectory(task, 0, "count", steps, epoch=epoch, end="submitted", run=run)


def test_turns_side_by_side_in_columns_of_one_width() -> None:
    a = side("A", play(Step("ls", "one\ntwo"), Step("wc -l", "2", score=Score(1.0))))
    b = side("B", play(Step("lss", "lss: command not found", valid=False, thought="hm")))
    lines = side_by_side([a, b], "t", width=61).splitlines()
    assert lines[0] == "t: count"
    assert lines[2] == "A: react, m                   | B: react, m"
    body = [line for line in lines[2:] if line]
    assert all(line[29:32] in (" | ", " |") for line in body)
    assert "$ ls                          | ~ hm" in lines
    assert any("[1]  (explores)" in line and "[1]  (command not found)" in line for line in lines)
    assert any(line.startswith("[2]  score 1.00") and line.endswith("|") for line in lines)
    assert any(" 1 turn, " in line for line in lines)
    assert any("solved at turn 2" in line for line in lines)


def test_control_characters_do_not_reach_the_terminal() -> None:
    evil = "\x1b[2Jgone\x07\x9b31m \u202eback \x00\r\nnext\tcell"
    text = side_by_side([side("A", play(Step("x", evil)))], "t", width=80)
    assert "gone" in text and "next" in text
    bad = [c for c in text if c != "\n" and (ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0)]
    assert bad == [] and "\u202e" not in text
    assert "\u241b[2J" in text


def test_double_width_characters_keep_the_columns() -> None:
    a = side("A", play(Step("echo 漢字漢字漢字漢字漢字漢字漢字", "漢" * 40)))
    b = side("B", play(Step("echo b", "b")))
    lines = side_by_side([a, b], "t", width=57).splitlines()
    (row,) = [line for line in lines if line.endswith("| b")]
    left = row.partition(" | ")[0]
    assert sum(2 if ord(c) > 0x2E80 else 1 for c in left) == 27


def test_long_observations_lose_their_middle_unless_full() -> None:
    a = side("A", play(Step("seq 100", "\n".join(map(str, range(100))))))
    short = side_by_side([a], "t", width=80)
    assert f"[... {100 - MAX_OBSERVATION_LINES} lines left out ...]" in short and "\n99\n" in short
    assert "\n50\n" not in short
    assert "\n50\n" in side_by_side([a], "t", width=80, full=True)


def test_the_epoch_that_all_have_is_shown_first() -> None:
    a = side("A", play(Step("a1", ""), epoch=1), play(Step("a2", ""), epoch=2))
    b = side("B", play(Step("b0", ""), epoch=0), play(Step("b2", ""), epoch=2))
    text = side_by_side([a, b], "t", width=80)
    assert "$ a2" in text and "$ b2" in text
    with pytest.raises(UsageError, match="B has no epoch 1 of t, but 0, 2"):
        side_by_side([a, b], "t", epoch=1, width=80)
    c = side("C", play(Step("c3", ""), epoch=3))
    assert "$ c3" in side_by_side([a, c], "t", width=80)


def test_a_side_without_the_task_is_marked_missing() -> None:
    a = side("A", play(Step("a", "")))
    gone = side("B", play(Step("b", ""), task="u"))
    failed = side("C", Trajectory("t", 0, "count", (), end="error", error="lost"))
    lines = side_by_side([a, gone, failed], "t", width=120).splitlines()
    assert any("missing" in line and "ended in an error" in line for line in lines)
    with pytest.raises(UnknownNameError, match="did you mean 't'"):
        side_by_side([a], "tt", width=80)
