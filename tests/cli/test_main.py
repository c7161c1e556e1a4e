"""The command line: help for newcomers, and one clear line for a mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from intercode import cli
from intercode.cli import COMMANDS, main
from intercode.cli.listing import DESCRIPTIONS


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Return the status and the single error line of a failing command."""
    status = main(words)
    out, errors = capsys.readouterr()
    assert out == ""
    assert errors.startswith("intercode: ") and errors.count("\n") == 1
    return status, errors


@pytest.mark.parametrize("name", sorted({*COMMANDS} - {"check", "replay"}))
def test_every_command_explains_itself_with_an_example(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"usage: intercode {name}" in text
    assert f"\n  intercode {name}" in text.partition("examples:")[2]


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"\n  {name} " in text for name in COMMANDS)
    assert main([]) == 2
    assert capsys.readouterr().out == text


def test_no_command_has_more_than_two_modes_and_each_form_has_options_of_the_command() -> None:
    with_modes = {}
    for name in COMMANDS:
        _, parser, module = cli._make_parser(name)
        if (modes := getattr(module, "MODES", None)) is not None:
            options = {action.dest for action in parser._actions}
            assert all(options >= {*names} for forms in modes.values() for names in forms.values())
            with_modes[name] = len(modes)
    assert with_modes == {"replay": 2, "check": 2, "serve": 2}


@pytest.mark.slow
def test_help_imports_no_command() -> None:
    code = (
        "import sys; from intercode.cli import main; main(['--help']);"
        "print(sorted(m for m in sys.modules if m.startswith('intercode.cli.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["evla"], "did you mean 'eval'"),
        (["eval", "startr", "--agent", "gold"], "did you mean 'starter'"),
        (["eval", "starter", "--agent", "glod"], "did you mean 'gold'"),
        (["eval", "starter", "--agnet", "gold"], "did you mean --agent"),
        (["eval", "--dataset", "starter"], "DATASET is given without an option"),
        (["view", "runs", "--out", "x"], "unknown argument '--out'; see"),
        (["eval", "starter"], "no agent is given"),
        (["eval"], "no dataset is given"),
        (["eval", "starter", "--agent", "gold", "--parallel", "0"], "whole number of at least 1"),
        (["eval", "starter", "--agent", "gold", "--profile", "standrad"], "'standard'"),
        (["eval", "starter", "--agent", "gold", "--set", "reward=no.such:f"], "no.such"),
        (["eval", "starter", "--agent", "gold", "--image", "hots"], "is not an image"),
        (["eval", "starter", "--agent", "gold", "--tasks", "starter/bash/x"], "unknown task"),
        (["eval", "starter", "--agent", "gold", "--set", "agent_options.a=1"], "no option 'a'"),
        (["eval", "starter", "--agent", "try-again"], "--model"),
        (["eval", "starter", "--agent", "gold", "--seed", "x"], "a whole number is needed, not"),
        (["sandbox", "rn"], "did you mean 'run'"),
        (["replay", "runs", "--score", "standrad"], "did you mean 'standard'"),
        (["report", "nowhere"], "no such file or directory: nowhere"),
        (["report", "."], "no logs below"),
        (["play", "startr"], "did you mean 'starter'"),
        (["list", "agnets"], "did you mean 'agents'"),
        (["image", "build", "nl2bsh"], "did you mean 'nl2bash'"),
        (["list", "--fetch", "nl2bsh"], "did you mean 'nl2bash'"),
        (
            ["list", "--fetch", "nl2bash", "--mirror", "nowhere"],
            "not an http:// or https:// address",
        ),
        (["list", "--dest", "d"], "--fetch DATASET"),
        (["regrade", "run"], "is now `intercode replay RUN --score PROFILE --out DIR`"),
    ],
)
def test_a_mistake_gets_one_line_and_status_2(
    words: list[str],
    hint: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    status, line = refused(words, capsys)
    assert status == 2
    assert hint in line
    assert list(tmp_path.iterdir()) == []


def test_a_missing_endpoint_names_what_to_set(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "INTERCODE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    words = ["eval", "starter", "--agent", "try-again", "--model"]
    status, line = refused([*words, "mine"], capsys)
    assert status == 2 and "--base-url" in line and "OPENAI_BASE_URL" in line
    status, line = refused([*words, "openai/x"], capsys)
    assert status == 2 and "set OPENAI_API_KEY" in line


def test_a_broken_file_is_named_with_its_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"query": "a", "gold": "b"}\n{"query": \n')
    status, line = refused(["eval", str(path), "--agent", "gold"], capsys)
    assert status == 2 and "mine.jsonl, line 2" in line
    path = tmp_path / "log.json"
    path.write_text('{\n"0": }')
    status, line = refused(["report", str(path)], capsys)
    assert status == 2 and "log.json, line 2" in line


@pytest.mark.sandbox
def test_eval_prints_the_table_and_names_the_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    settings = tmp_path / "run.toml"
    settings.write_text('dataset = "starter"\nagent = "noop"\nlimit = 3\nparallel = 2\n')
    out = tmp_path / "out"
    words = ["eval", "--config", str(settings), "--agent", "gold", "--out", str(out)]
    assert main(words) == 0
    printed, said = capsys.readouterr()
    assert "100.0" in printed and str(out / "trajectories.jsonl") in printed
    assert "3/3 done, success 100.0 % [44, 100], 0 errors" in said
    assert main(words) == 0
    assert f"3 of 3 episodes are finished already in {out}" in capsys.readouterr().err
    assert main([*words, "--model", "p/m", "--limit", "500", "--dry-run"]) == 0
    said = capsys.readouterr().err
    assert "the agent gold uses no model: --model p/m has no effect" in said
    assert "500 tasks are asked for, and there are only " in said
    assert main(["eval", "--resume", str(tmp_path)]) == 2
    assert "is no run" in capsys.readouterr().err
    (tmp_path / "README.txt").touch()
    assert main(["eval", "--resume", str(tmp_path)]) == 2
    assert "is the directory of an experiment" in capsys.readouterr().err
    assert main(["report", str(out), "--format", "json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)
    assert table["rows"][0]["agent"] == "gold" and table["rows"][0]["tasks"] == 3


@pytest.mark.sandbox
def test_episodes_with_errors_give_status_3(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "two.json"
    path.write_text('[{"query": "a", "gold": null}, {"query": "b", "gold": "echo b"}]')
    words = ["eval", str(path), "--agent", "gold", "--out", str(tmp_path / "out")]
    assert main(words) == 3
    printed, said = capsys.readouterr()
    assert "errors in 1 of the episodes" in said
    assert "1 x GoldError: two/0 has no gold" in said
    assert "100.0" in printed  # the success of the episode that was played


def test_list_prints_names_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "try-again" in found["agents"] and "nl2bash" in found["datasets"]
    assert all(row["description"].endswith(".") for rows in found.values() for row in rows.values())
    assert found["agents"]["gold"]["package"] == "intercode-gym"
    assert found["datasets"]["starter"]["installed"] and found["datasets"]["starter"]["tasks"] > 200
    for kind, rows in found.items():
        own = {name for name, row in rows.items() if row["package"] == "intercode-gym"}
        assert DESCRIPTIONS.get(kind, {}).keys() <= own  # plug-ins describe themselves


def test_list_prints_whether_data_is_installed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("INTERCODE_DATA", str(tmp_path))
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
    assert main(["list", "datasets"]) == 0
    text = capsys.readouterr().out
    assert "Not installed: run `intercode list --fetch nl2bash`." in text
    assert "tasks (bash " in text and "), installed." in text
    assert "Subsets: fs_1, fs_2, fs_3, fs_4, verified." in text
    assert "Subsets: bash, code, ctf, python, sql." in text
