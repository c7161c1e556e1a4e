"""Input and output of ``intercode play`` without a terminal: from a pipe, line by line."""

from __future__ import annotations

import sys

from intercode.cli.output import escape_all_but_colours
from intercode.cli.play.input_rules import InputRules
from intercode.cli.play.interrupts import InterruptGate
from intercode.cli.play.terminal_player import Quit


class PlainConsole:
    """Reads standard input and prints to standard output.

    It also prints what it reads from a pipe, so that the output of a scripted session looks like
    that of a typed one.
    """

    gate: InterruptGate | None = None

    def ask(self, prompt: str, rules: InputRules, default: str = "") -> str:
        """Read an action or a command. Text to be edited has to be typed again."""
        if default:
            self.say("(type it anew)")
        lines = [self._line(prompt)]
        while lines[0].strip() and rules.is_unfinished(lines):
            lines.append(self._line(rules.continuation_prompt))
        return "\n".join(lines)

    def say(self, text: str) -> None:
        """Print text, of which only colours may control the terminal."""
        text = escape_all_but_colours(text)
        print(text, end="" if text.endswith("\n") else "\n")

    def code(self, text: str) -> None:
        """Print code."""
        self.say(text)

    def _line(self, prompt: str) -> str:
        try:
            text = input(prompt)
        except EOFError as e:
            raise Quit from e
        if not sys.stdin.isatty():
            print(text)
        return text
