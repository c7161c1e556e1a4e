"""The console at a terminal: editing, colours, history, status line, and what Ctrl-C stops."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.shortcuts import CompleteStyle

from intercode.cli.play.console import (
    AGENT_COMMANDS,
    PLAY_COMMANDS,
    Console,
    Quit,
    format_number,
    is_command,
)
from intercode.core.types import ActionLanguage, Brief
from intercode.evaluation.play.interactive_episode import InteractiveEpisode
from intercode_sandbox.command.output import escape_control
from intercode_sandbox.platforms.paths import state_root

MAX_PRESSES = 5
"""Pressed this many times while nothing may be interrupted, Ctrl-C still ends the session."""
_INDENT = "    "


class ActionHistory(FileHistory):
    """The actions typed in one environment in all sessions, without the commands."""

    def store_string(self, string: str) -> None:
        """Store an action."""
        if not is_command(string):
            super().store_string(string)


class TerminalConsole(Console):
    """A human at a terminal.

    Enter runs a complete action and begins a new line in an incomplete one. Alt-Enter always begins
    a new line. Ctrl-C discards the input, Ctrl-D on an empty line ends the session. While an action
    runs or the agent thinks, Ctrl-C interrupts it, also if it was pressed since the last input;
    elsewhere it interrupts nothing half-way. ``limit``: the actions a task may take, None for any
    number.
    """

    def __init__(
        self,
        environment: str,
        language: ActionLanguage,
        agent: str | None = None,
        limit: int | None = None,
    ) -> None:
        super().__init__(language, agent)
        self._limit = limit
        self._episode: InteractiveEpisode | None = None
        self._is_interruptible, self._presses = False, 0
        self._lexer = _pygments_lexer(language.typing.lexer)
        words = [*PLAY_COMMANDS, *(AGENT_COMMANDS if agent else ())]
        self._session: PromptSession[str] = PromptSession(
            history=ActionHistory(str(history_file(environment))),
            lexer=PygmentsLexer(self._lexer) if self._lexer else None,
            auto_suggest=AutoSuggestFromHistory(),
            completer=WordCompleter(words, sentence=True),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            multiline=True,
            key_bindings=self._keys(),
            prompt_continuation=language.typing.continuation_prompt,
            bottom_toolbar=self._status,
        )

    # ------------------------------------------------------------- Ctrl-C
    @contextmanager
    def session(self) -> Iterator[None]:
        """Handle SIGINT while the block runs. Only the main thread may call this."""
        before = signal.signal(signal.SIGINT, self._press)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let Ctrl-C interrupt the block."""
        self._is_interruptible = True
        try:
            if self._presses:
                raise KeyboardInterrupt
            yield
        finally:
            self._is_interruptible, self._presses = False, 0

    def interrupted(self) -> None:
        """Say so. The human is asked again."""
        self.note("stopped; its effects are undone")

    def _press(self, number: int, frame: Any) -> None:  # noqa: ARG002
        self._presses += 1
        if self._is_interruptible or self._presses >= MAX_PRESSES:
            raise KeyboardInterrupt

    # ------------------------------------------------------------- output
    def start(self, brief: Brief, episode: InteractiveEpisode) -> None:
        """Print the task, and show the state of its episode from now on."""
        self._episode = episode
        super().start(brief, episode)

    def code(self, text: str) -> None:
        """Print code, in colours unless NO_COLOR is set or Pygments is not installed."""
        text = escape_control(text)
        if self._lexer and not os.environ.get("NO_COLOR"):
            from pygments import highlight  # type: ignore[import-untyped]
            from pygments.formatters import TerminalFormatter  # type: ignore[import-untyped]

            lexer = self._lexer(stripnl=False, ensurenl=False)
            text = highlight(text, lexer, TerminalFormatter())
        self.say(text)

    def _status(self) -> str:
        """Return one line with the task, the turn and the last score that was requested."""
        episode = self._episode
        if episode is None:
            return ""
        turns = f"turn {len(episode.steps) + 1}" + (f" of {self._limit}" if self._limit else "")
        parts = [episode.env.task.id, turns]
        if episode.last_score is not None:
            after, score = episode.last_score
            suffix = "" if after == len(episode.steps) else f" after turn {after}"
            parts.append(f"score {format_number(score.value)}{suffix}")
        return "  |  ".join([*parts, "help"])

    # ------------------------------------------------------------- input
    def ask(self, prompt: str, default: str = "") -> str:
        """Read an action or command, which can be edited. Raises Quit for Ctrl-D."""
        self._presses, handler = 0, signal.getsignal(signal.SIGINT)
        while True:
            try:
                return self._session.prompt(prompt, default=default)
            except KeyboardInterrupt:
                continue
            except EOFError as e:
                raise Quit from e
            finally:  # older versions of prompt_toolkit leave Python's own
                signal.signal(signal.SIGINT, handler)

    def _is_complete(self, text: str) -> bool:
        lines, typing = text.split("\n"), self.language.typing
        if typing.indents and not lines[-1].strip():
            lines[-1] = ""
        return not text.strip() or not typing.is_unfinished(lines)

    def _keys(self) -> KeyBindings:
        keys, indents = KeyBindings(), self.language.typing.indents

        def begin_line(buffer: Any) -> None:
            before = buffer.document.current_line_before_cursor
            buffer.newline(copy_margin=indents)
            if indents and before.rstrip().endswith(":"):
                buffer.insert_text(_INDENT)

        @keys.add("enter")
        def enter(event: KeyPressEvent) -> None:
            buffer, is_complete = event.current_buffer, self._is_complete(event.current_buffer.text)
            if buffer.document.is_cursor_at_the_end and is_complete:
                buffer.text = buffer.text.rstrip(" \t") if indents else buffer.text
                buffer.validate_and_handle()
            elif "\n" in buffer.document.text_after_cursor or not is_complete:
                begin_line(buffer)
            else:
                buffer.validate_and_handle()

        @keys.add("escape", "enter")
        def new_line(event: KeyPressEvent) -> None:
            begin_line(event.current_buffer)

        return keys


def _pygments_lexer(name: str) -> Any:
    """Return the lexer of a language, or None if Pygments is not installed."""
    try:
        from pygments import lexers
    except ImportError:
        return None
    return getattr(lexers, name, lexers.TextLexer)


def history_file(environment: str) -> Path:
    """Return the file with the actions typed in an environment. Only its owner can read it."""
    path = state_root() / "history" / environment
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600)
    return path
