"""A human at a plain prompt. ``intercode play`` is the comfortable alternative."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ClassVar

from intercode.agents.base import Feedback
from intercode.core.errors import UsageError
from intercode.core.types import AgentOutput, Brief


class HumanAgent:
    """Reads actions from a human, line by line, for ``rollout``.

    ``read`` returns a line for a prompt and ``show`` prints; the defaults work in a terminal and in
    a notebook. An empty line is read again; the end of the input ends the episode.
    """

    name: ClassVar[str] = "human"
    wants_score: bool = False
    max_turns: int | None = None

    def __init__(
        self, *, read: Callable[[str], str] | None = None, show: Callable[[str], None] | None = None
    ) -> None:
        self._uses_terminal = read is None
        self._read, self._show = read or input, show or print

    def start(self, brief: Brief) -> None:
        """Show the task. Raises UsageError if several episodes would read from one terminal."""
        if self._uses_terminal and threading.current_thread() is not threading.main_thread():
            raise UsageError("a human can only play one episode at a time: use `intercode play`")
        self._show("\n".join(filter(None, [f"[{brief.task}] {brief.query}", brief.notes])))

    def act(self, feedback: Feedback | None) -> AgentOutput | None:
        """Show the observation and read the next action; None at the end of the input."""
        if feedback is not None:
            stopped = "\n(stopped at the time limit)" if feedback.timed_out else ""
            self._show(feedback.observation.removesuffix("\n") + stopped)
        try:
            while not (line := self._read("action> ")).strip():
                continue
        except EOFError:
            return None
        return AgentOutput(line, actor="human")
