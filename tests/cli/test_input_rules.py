"""Whether a typed action is complete."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from intercode.cli import main
from intercode.core import trajectories
from intercode.environments.languages.typing_rules import (
    is_unfinished_python,
    is_unfinished_shell,
    is_unfinished_sql,
)
from support.descriptions import language_of


@pytest.mark.parametrize(
    "lines",
    [
        ["ls \\"],
        ["cat <<E", "a"],
        ["cat <<-'END' > f", "x", "END x"],
        ["cat <<A <<B", "A"],
        ["cat <<E", "E", "cat <<F"],
    ],
)
def test_bash_is_incomplete(lines: list[str]) -> None:
    assert is_unfinished_shell(lines)


@pytest.mark.parametrize(
    "lines",
    [["ls"], ["ls \\", "-l"], ["cat <<E", "<<F", "E"], ["cat <<< word"], ["cat <<A <<B", "A", "B"]],
)
def test_bash_is_complete(lines: list[str]) -> None:
    assert not is_unfinished_shell(lines)


@pytest.mark.parametrize(
    "lines",
    [["def f():"], ["def f():", "  return 1"], ["x = (1,"], ['"""a'], ["@cached"], ["if x: \\"]],
)
def test_python_is_incomplete(lines: list[str]) -> None:
    assert is_unfinished_python(lines)


@pytest.mark.parametrize(
    "lines",
    [
        ["x = 1"],
        ["def f():", "  return 1", ""],
        ["x = (1,", ")"],
        ["1 +* 2"],
        ["submit f"],
        ["'\\d'"],
        ["for x in y: print(x)", ""],
    ],
)
def test_python_is_complete_or_wrong(lines: list[str], recwarn: pytest.WarningsRecorder) -> None:
    assert not is_unfinished_python(lines)
    assert not recwarn.list


@pytest.mark.parametrize(
    "lines", [["SELECT (", "1"], ["SELECT 'a"], ["SELECT `a", "b"], ["SELECT (')'"]]
)
def test_sql_is_incomplete(lines: list[str]) -> None:
    assert is_unfinished_sql(lines)


@pytest.mark.parametrize(
    "lines",
    [
        ["SELECT 1"],
        ["SELECT 1;"],
        ["SELECT (", "1)"],
        ["SELECT 'it''s (', \"b'\""],
        ["SELECT 1 << n"],
        ["SELECT 1 -- it's ("],
        ["SELECT 'a\\'b'"],
        ["submit"],
        ["SELECT 1)"],
    ],
)
def test_sql_is_complete_or_wrong(lines: list[str]) -> None:
    assert not is_unfinished_sql(lines)


def test_other_languages_follow_the_rules_of_a_shell() -> None:
    assert language_of("ctf").typing == language_of("bash").typing != language_of("python").typing


@pytest.mark.sandbox
def test_a_human_plays_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = (
        "def split(total, parts):\n    if parts < 1:\n        raise ValueError(parts)\n"
        "    each, more = divmod(total, parts)\n    return [each + 1] * more + [each] *"
        " (parts - more)\n\nsplit(10, 3)\nhelp\nscore\nsubmit\n"
    )
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    out = tmp_path / "out"
    task = "starter/python/fair-split"
    assert main(["play", "starter:python", "--tasks", task, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert ">>> def split(total, parts):\n...     if parts < 1:" in printed
    assert "[4, 3, 3]" in printed and "Everything else is run as Python." in printed
    assert "reward 1 (tests 1)" in printed and "1 of 1 solved." in printed
    (episode,) = trajectories.read_trajectories(out / trajectories.TRAJECTORIES_FILE)
    assert [s.action.count("\n") for s in episode.steps] == [5, 0, 0]
