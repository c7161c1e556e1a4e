"""A policy of the command line is applied, recorded, and applied again in a replay."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from intercode.cli import main
from intercode.cli.shared_options import run_settings
from intercode.core import trajectories


def test_rules_of_the_command_line_are_added_to_those_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('deny = ["command:rm"]\nunparsed = "refuse"\n')
    given = [f"policy={file}", "policy.deny=command:mv", "policy.allow=command:*"]
    rules = {"deny": ["command:rm", "command:mv"], "unparsed": "refuse", "allow": ["command:*"]}
    assert run_settings({"set": given, "limit": 1}, {}) == {
        "limit": 1,
        "env_options": {"policy": rules},
    }
    before = {"env_options": {"policy": {"deny": ["command:rm"]}}}
    added = run_settings({"set": given[1:2]}, before)
    assert added == {"env_options": {"policy": {"deny": ["command:rm", "command:mv"]}}}
    assert before == {"env_options": {"policy": {"deny": ["command:rm"]}}}
    assert run_settings({}, {}) == {}


@pytest.mark.sandbox
def test_an_evaluation_under_a_policy_is_a_run_of_its_own_and_replays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["eval", "starter:bash", "--agent", "gold", "--limit", "2", "--out", str(out)]
    rule = ["--set", "policy.deny=command:chmod"]
    assert main([*words, *rule]) == 0
    made = trajectories.read_trajectories(out / trajectories.TRAJECTORIES_FILE)
    first, second = sorted(made, key=lambda t: t.index)
    assert not any(s.refused for s in first.steps)
    assert [s.refused for s in second.steps] == [True, False] and not second.success
    assert trajectories.read_run_metadata(out)["policy"]["deny"] == ["command:chmod"]
    capsys.readouterr()
    assert main(["replay", str(out)]) == 0
    assert capsys.readouterr().out.strip().splitlines()[-1].startswith("EQUAL")
    assert main(words) == 2
    assert "contains a run with policy" in capsys.readouterr().err


@pytest.mark.sandbox
def test_a_human_sees_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = [
        "play",
        "starter:bash",
        "--tasks",
        "0",
        "--set",
        "policy.allow=command:ls",
        "--out",
        str(out),
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO("find /\nls /srv\nskip\n"))
    assert main(words) == 0
    assert "Refused: `find /` is not among what is allowed" in capsys.readouterr().out
    (made,) = trajectories.read_trajectories(out / trajectories.TRAJECTORIES_FILE)
    assert [s.refused for s in made.steps] == [True, False]


def test_a_wrong_rule_ends_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "starter:bash", "--agent", "gold", "--set", "policy.deny=rm"]) == 2
    assert "the rule 'rm' is not of the form kind:pattern" in capsys.readouterr().err
