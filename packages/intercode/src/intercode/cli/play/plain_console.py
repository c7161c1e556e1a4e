"""Input and output of ``intercode play`` without a terminal: from a pipe, line by line."""

from __future__ import annotations

import sys

from intercode.cli.play.terminal_player import Console, Quit
from intercode.core.types import Typing


class PlainConsole(Console):
    """Reads standard input and prints to standard output.

    It also prints what it reads from a pipe, so that the output of a scripted session looks like
    that of a typed one.
    """

    def ask(self, prompt: str, rules: Typing, default: str = "") -> str:
        """Read an action or a command. Text to be edited has to be typed again."""
        if default:
            self.say("(type it anew)")
        lines = [self._line(prompt)]
        while lines[0].strip() and rules.is_unfinished(lines):
            lines.append(self._line(rules.continuation_prompt))
        return "\n".join(lines)

    def _line(self, prompt: str) -> str:
        try:
            text = input(prompt)
        except EOFError as e:
            raise Quit from e
        if not sys.stdin.isatty():
            print(text)
        return text
