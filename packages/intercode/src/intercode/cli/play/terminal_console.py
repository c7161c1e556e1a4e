"""Input and output of ``intercode play`` at a terminal: editing, colours, history, status line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.shortcuts import CompleteStyle

from intercode.cli.play.interrupts import InterruptGate
from intercode.cli.play.terminal_player import Console, Quit, is_command
from intercode.core.types import Typing
from intercode_sandbox.command.output import escape_control
from intercode_sandbox.platforms.paths import state_root

_INDENT = "    "


class ActionHistory(FileHistory):
    """The actions typed in one environment in all sessions, without the commands."""

    def store_string(self, string: str) -> None:
        """Store an action."""
        if not is_command(string):
            super().store_string(string)


class TerminalConsole(Console):
    """Reads from a terminal.

    Enter runs a complete action and begins a new line in an incomplete one. Alt-Enter always begins
    a new line. Ctrl-C discards the input, Ctrl-D on an empty line ends the session. ``typing``: how
    the language is typed. ``status`` returns the line at the bottom, ``words`` are completed, and
    ``gate`` decides what else Ctrl-C stops.
    """

    def __init__(
        self,
        environment: str,
        typing: Typing,
        status: Callable[[], str],
        words: Iterable[str],
        gate: InterruptGate,
    ) -> None:
        self.gate = gate
        self._rules, self._lexer = typing, pygments_lexer(typing)
        self._session: PromptSession[str] = PromptSession(
            history=ActionHistory(str(history_file(environment))),
            lexer=PygmentsLexer(self._lexer) if self._lexer else None,
            auto_suggest=AutoSuggestFromHistory(),
            completer=WordCompleter(list(words), sentence=True),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            multiline=True,
            key_bindings=self._keys(),
            prompt_continuation=self._rules.continuation_prompt,
            bottom_toolbar=status,
        )

    def ask(self, prompt: str, rules: Typing, default: str = "") -> str:  # noqa: ARG002
        if self.gate:
            self.gate.clear()
        while True:
            try:
                return self._session.prompt(prompt, default=default)
            except KeyboardInterrupt:
                continue
            except EOFError as e:
                raise Quit from e

    def code(self, text: str) -> None:
        """Print code, in colours unless NO_COLOR is set or Pygments is not installed."""
        text = escape_control(text)
        if self._lexer and not os.environ.get("NO_COLOR"):
            from pygments import highlight  # type: ignore[import-untyped]
            from pygments.formatters import TerminalFormatter  # type: ignore[import-untyped]

            lexer = self._lexer(stripnl=False, ensurenl=False)
            text = highlight(text, lexer, TerminalFormatter())
        self.say(text)

    def is_complete(self, text: str) -> bool:
        """Return whether a text is a complete action."""
        lines = text.split("\n")
        if self._rules.indents and not lines[-1].strip():
            lines[-1] = ""
        return not text.strip() or not self._rules.is_unfinished(lines)

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter")
        def enter(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if buffer.document.is_cursor_at_the_end and self.is_complete(buffer.text):
                buffer.text = buffer.text.rstrip(" \t") if self._rules.indents else buffer.text
                buffer.validate_and_handle()
            elif "\n" in buffer.document.text_after_cursor or not self.is_complete(buffer.text):
                self._new_line(buffer)
            else:
                buffer.validate_and_handle()

        @keys.add("escape", "enter")
        def new_line(event: KeyPressEvent) -> None:
            self._new_line(event.current_buffer)

        return keys

    def _new_line(self, buffer: Any) -> None:
        """Begin a new line, indented as Python needs it."""
        before = buffer.document.current_line_before_cursor
        buffer.newline(copy_margin=self._rules.indents)
        if self._rules.indents and before.rstrip().endswith(":"):
            buffer.insert_text(_INDENT)


def pygments_lexer(typing: Typing) -> Any:
    """Return the lexer of a language, or None if Pygments is not installed."""
    try:
        from pygments import lexers
    except ImportError:
        return None
    return getattr(lexers, typing.lexer, lexers.TextLexer)


def history_file(environment: str) -> Path:
    """Return the file with the actions typed in an environment. Only its owner can read it."""
    path = state_root() / "history" / environment
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600)
    return path
