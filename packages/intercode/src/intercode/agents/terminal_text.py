"""Finds the code in a text that was copied from a terminal: prompts, commands and their output."""

from __future__ import annotations

import re

from intercode.core.types import Terminal
from intercode.core.types.descriptions import load_function


def typed_code(text: str, terminal: Terminal) -> str | None:
    """Return what was typed at the prompts of a terminal, without the prompts and the output.

    Returns None if the first line does not begin with a prompt.
    """
    prompt = re.compile(rf"[ \t]*{terminal.prompt}(?:[ \t]+|$)")
    continuation = re.compile(rf"[ \t]*{terminal.continuation}(?:[ \t]|$)")
    if not prompt.match(text):
        return None
    knows_open = terminal.is_open is not None
    goes_on = load_function(terminal.is_open, bool)
    typed: list[str] = []
    command = ""
    for line in text.split("\n"):
        is_open = knows_open and bool(command) and goes_on(command)
        if found := (None if is_open and not prompt.match(line) else prompt.match(line)):
            command = line[found.end() :]
            typed.append(command)
        elif (not knows_open or is_open) and (found := continuation.match(line)):
            typed.append(line[found.end() :])
            command += f"\n{typed[-1]}"
        elif is_open:
            typed.append(line)
            command += f"\n{line}"
        else:  # output
            command = ""
    return "\n".join(typed).strip("\n")
