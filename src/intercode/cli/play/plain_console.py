"""Typing without a terminal: from a pipe, line by line."""

from __future__ import annotations

import sys

from intercode.cli.play.input_rules import InputRules
from intercode.cli.play.interrupts import InterruptGate
from intercode.cli.play.terminal_player import Quit


class PlainConsole:
    """Reads standard input and prints. What was read is printed as well, so that a scripted session
    reads like a typed one."""

    gate: InterruptGate | None = None

    def ask(self, prompt: str, typing: InputRules, default: str = "") -> str:
        """See Console. What is to be edited has to be typed anew."""
        if default:
            self.say("(type it anew)")
        lines = [self._line(prompt)]
        while lines[0].strip() and typing.is_unfinished(lines):
            lines.append(self._line(typing.continuation_prompt))
        return "\n".join(lines)

    def say(self, text: str) -> None:
        """See Console."""
        print(text, end="" if text.endswith("\n") else "\n")

    def code(self, text: str) -> None:
        """See Console."""
        self.say(text)

    def _line(self, prompt: str) -> str:
        try:
            text = input(prompt)
        except EOFError as e:
            raise Quit from e
        if not sys.stdin.isatty():
            print(text)
        return text
