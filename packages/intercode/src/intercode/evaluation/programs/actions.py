"""Reads the actions of a program: from the tool calls of answers, and from its shells."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from intercode.core.types import SUBMIT
from intercode.models.base import ToolCall
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.long_output import Collector
from intercode_sandbox.streams import decode

CODE_ARGUMENTS = ("command", "cmd", "script", "code", "statement")
"""The arguments of tools in which code is passed."""
_HISTORY_BYTES = 1 << 20
_MAX_COMMANDS = 1000  # of a turn
_COMMAND_CHARACTERS = 2000
"""What is recorded of a reported command: programs put long set-ups before the model's code."""
_REPORT_SCRIPT = """[ -z "$BASH_EXECUTION_STRING" ] || printf '%s\\0' "$BASH_EXECUTION_STRING" >> {}
"""
"""What each `bash -c` of a program runs first. It does not change the status of the command."""


def action_of(call: ToolCall) -> str:
    """Return the action that a tool call stands for: code, a submission, or the call as it is."""
    name, text = call["function"]["name"], call["function"]["arguments"]
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        return f"{name} {text}"
    if name == SUBMIT:
        return " ".join([SUBMIT, *map(str, arguments.values())])
    code = next((arguments[key] for key in CODE_ARGUMENTS if key in arguments), None)
    if isinstance(code, str):
        return code
    if isinstance(code, list) and code and all(isinstance(word, str) for word in code):
        return code_of(code)
    return f"{name} {text}"


def code_of(argv: Sequence[str]) -> str:
    """Return the code of ``bash -lc CODE``, or the words of another command."""
    shell, option, *code = [*argv[:2], *argv[2:]] if len(argv) > 1 else [argv[0], ""]
    is_shell = shell.rpartition("/")[2] in ("bash", "sh", "zsh") and option.endswith("c")
    return code[0] if is_shell and len(code) == 1 else shlex.join(argv)


@dataclass
class ReportedAction:
    """Something that a program says it has done: what is recorded of it, its output so far, and the
    id of the tool call that it belongs to, if that is known."""

    entry: dict[str, Any]
    output: Collector
    call: str = ""


class ShellHistory:
    """The commands that the shells of a program report, in a file of the sandbox.

    Programs can write that file themselves: it says what they report, not what they did.
    """

    def __init__(self, sandbox: BaseSandbox, directory: str) -> None:
        self._sandbox, self._file = sandbox, f"{directory}/history"
        self.script = f"{directory}/report"
        self._read = 0
        sandbox.write(self.script, _REPORT_SCRIPT.format(shlex.quote(self._file)).encode())

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables with which shells report."""
        return {"BASH_ENV": self.script}

    def new_commands(self) -> list[str]:
        """Return the commands that were reported since the last call. Those beyond a MiB of text
        are not read, and of many only the last are returned."""
        data = b""
        with suppress(OSError):
            data = self._sandbox.read(self._file, _HISTORY_BYTES)
        new, self._read = data[self._read :], max(self._read, len(data))
        commands = [command for command in new.split(b"\0") if command][-_MAX_COMMANDS:]
        return [_clip(decode(command)) for command in commands]


def _clip(command: str) -> str:
    omitted = len(command) - _COMMAND_CHARACTERS
    return command if omitted <= 0 else f"[... {omitted} characters ...]{command[omitted:]}"


def describe_actions(
    seen: Sequence[dict[str, Any]],
    calls: Sequence[ToolCall],
    commands: Sequence[str],
    reported: Sequence[dict[str, Any]] = (),
) -> list[dict[str, Any]]:
    """Return each action of a turn beyond those that are in ``seen``, and how it was seen, for the
    record. ``reported``: those that are described already."""
    new = [
        {"seen": "tool call", "tool": c["function"]["name"], "action": action_of(c)} for c in calls
    ]
    new += reported
    known = {entry["action"].strip() for entry in (*seen, *new)}
    return new + [
        {"seen": "shell history", "action": c} for c in commands if c.strip() not in known
    ]
