"""The command ``intercode-sandbox``. What its parts do is tested with ``intercode sandbox`` and
``intercode image``, which are the same code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import intercode_sandbox
from intercode_sandbox.command import main, make_parser
from intercode_sandbox.version import __version__

COMMANDS = ("run", "attach", "list", "end", "image", "serve", "doctor")


def test_the_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"    {name}  " in text for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_names_this_program(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"usage: intercode-sandbox {name}" in text
    assert not re.search(r"\bintercode (?!sandbox)[a-z]", text)


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"intercode-sandbox {__version__}\n"


@pytest.mark.sandbox
@pytest.mark.namespace_only
@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["run", "exit 3"], 3, ""),
        (["run", "no-such-program", "-x"], 127, "intercode-sandbox: no-such-program: No such"),
        (["run", "--timeout", "0.5", "sleep 60"], 124, "intercode-sandbox: killed at the time"),
        (["run"], 2, "see `intercode-sandbox run --help`"),
        (["run", "--bakend", "chroot", "true"], 2, "unknown argument '--bakend'"),
        (["runn"], 2, "unknown command 'runn'; did you mean 'run'?"),
        (["image", "show", "no-such"], 2, "unknown image 'no-such'"),
        (["image", "remove", "image:no-such"], 1, "see `intercode-sandbox image list`"),
        (["end", "1"], 2, "see `intercode-sandbox list`"),
        (["serve", "--backend", "landlock"], 2, "`intercode-sandbox doctor` lists"),
    ],
)
def test_a_command_has_a_status_and_names_this_program(
    words: list[str], status: int, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == status
    assert message in capfd.readouterr().err


@pytest.mark.sandbox
@pytest.mark.namespace_only
def test_a_module_is_the_same_command() -> None:
    words = [sys.executable, "-m", "intercode_sandbox", "run", "--", "sh", "-c", "cat; exit 7"]
    done = subprocess.run(words, input=b"text", capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, b"text", b"")


def test_doctor_prints_the_refused_calls(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--system-calls"]) == 0
    assert "ptrace" in capsys.readouterr().out.split()


def test_no_message_names_a_command_of_the_product() -> None:
    """``intercode-sandbox`` works without the package intercode."""
    root = Path(intercode_sandbox.__file__).parent
    named = re.compile(r"(?<![-\w/.])intercode (image|doctor|sandbox|serve|eval|view|list|check)\b")
    found = [
        f"{path.relative_to(root)}: {line.strip()}"
        for path in root.rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if named.search(line)
    ]
    assert found == []


def test_the_parser_has_each_command_once() -> None:
    [actions] = [a for a in make_parser()._actions if a.choices]
    assert tuple(actions.choices or ()) == COMMANDS
