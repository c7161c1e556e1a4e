"""Keys at the prompt, sent through prompt_toolkit's pipe in place of a terminal."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("prompt_toolkit", reason="pip install 'intercode-gym[play]'")

from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from intercode.cli.play import play_session
from intercode.cli.play.console import Quit
from intercode.cli.play.terminal_console import MAX_PRESSES, TerminalConsole, history_file
from intercode.core.errors import ConfigError
from support.descriptions import language_of

ENTER, ALT_ENTER, CTRL_C, CTRL_D, UP, DOWN, LEFT, TAB = (
    "\r",
    "\x1b\r",
    "\x03",
    "\x04",
    "\x1b[A",
    "\x1b[B",
    "\x1b[D",
    "\t",
)


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PipeInput]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        yield pipe


def typed(keys: PipeInput, text: str, environment: str = "bash", default: str = "") -> str:
    """Return the line that a new session reads from some keys."""
    console = TerminalConsole(environment, language_of(environment))
    keys.send_text(text)
    return console.ask("> ", default)


def test_enter_runs_complete_input_and_continues_incomplete_input(keys: PipeInput) -> None:
    assert typed(keys, f"ls -l{ENTER}") == "ls -l"
    assert typed(keys, f"cat <<E{ENTER}a{ENTER}E{ENTER}") == "cat <<E\na\nE"
    assert typed(keys, f"SELECT ({ENTER}1){ENTER}", "sql") == "SELECT (\n1)"
    assert typed(keys, ENTER) == ""


def test_alt_enter_begins_a_line_and_enter_in_the_middle_too(keys: PipeInput) -> None:
    assert typed(keys, f"a{ALT_ENTER}b{ENTER}") == "a\nb"
    assert typed(keys, f"ab{LEFT}{ENTER}") == "ab"
    assert typed(keys, f"a{ALT_ENTER}b{UP}{ENTER}c{DOWN}{ENTER}") == "a\nc\nb"


def test_python_is_indented_and_ended_by_an_empty_line(keys: PipeInput) -> None:
    text = f"if x:{ENTER}while y:{ENTER}z(){ENTER}{ENTER}"
    assert typed(keys, text, "python") == "if x:\n    while y:\n        z()\n"
    assert typed(keys, f"x = 1{ENTER}", "python") == "x = 1"


@pytest.mark.slow
def test_the_history_of_each_environment_has_no_commands(keys: PipeInput) -> None:
    for text in ("ls -l", "score", "undo 2", "pwd"):
        typed(keys, text + ENTER)
    typed(keys, f"SELECT 1{ENTER}", "sql")
    assert typed(keys, f"{UP}{UP}{ENTER}") == "ls -l"
    assert typed(keys, f"{UP}{ENTER}", "sql") == "SELECT 1"
    assert history_file("bash").stat().st_mode & 0o777 == 0o600


def test_ctrl_c_drops_the_line_and_ctrl_d_ends_the_session(keys: PipeInput) -> None:
    assert typed(keys, f"half a li{CTRL_C}ls{ENTER}") == "ls"
    with pytest.raises(Quit):
        typed(keys, CTRL_D)


def test_a_proposal_can_be_edited(keys: PipeInput) -> None:
    assert typed(keys, f"\x7f5{ENTER}", default="echo 4") == "echo 5"


def test_without_pygments_there_are_no_colours(
    keys: PipeInput, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    console = TerminalConsole("python", language_of("python"))
    console.code("x = 'a'")
    assert "\x1b[" in capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "pygments", None)
    monkeypatch.delitem(sys.modules, "pygments.lexers")
    assert typed(keys, f"ls{ENTER}") == "ls"
    console = TerminalConsole("python", language_of("python"))
    console.code("x = 'a'")
    assert capsys.readouterr().out.endswith("x = 'a'\n")


def test_a_terminal_without_prompt_toolkit_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(play_session, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"intercode-gym\[play\].*pipe"):
        play_session.run_new_session({"dataset": "starter", "agent": "human"})


def test_words_are_completed(keys: PipeInput) -> None:
    assert typed(keys, f"subm{TAB}{ENTER}") == "submit"


def test_ctrl_c_interrupts_only_what_may_be_interrupted(keys: PipeInput) -> None:
    console = TerminalConsole("bash", language_of("bash"))
    with console.session():
        signal.raise_signal(signal.SIGINT)  # the signal must not stop anything now
        with pytest.raises(KeyboardInterrupt), console.interruptible():
            raise AssertionError("an earlier Ctrl-C stops it at once")
        signal.raise_signal(signal.SIGINT)
        keys.send_text(ENTER)
        console.ask("> ")
        with console.interruptible():
            pass
        with pytest.raises(KeyboardInterrupt), console.interruptible():
            signal.raise_signal(signal.SIGINT)
        for _ in range(MAX_PRESSES - 1):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_printed_text_and_code_control_no_terminal(
    keys: PipeInput, capsys: pytest.CaptureFixture[str]
) -> None:
    assert keys
    console = TerminalConsole("bash", language_of("bash"))
    console.say("\x1b]52;c;ZQ==\x07\x1b[1;31mred")
    console.say("plain\x1bc\x9b2J\udc9b")
    assert capsys.readouterr().out == (
        "\\x1b]52;c;ZQ==\\x07\x1b[1;31mred\x1b[0m\nplain\\x1bc\\x9b2J\\udc9b\n"
    )
    console.code("echo \x1b]52;c;ZQ==\x07")
    assert not {"\x07", "\x1b]"} & set(capsys.readouterr().out.replace("\x1b]", "\x07"))
