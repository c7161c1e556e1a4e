"""Submits at once: a task that rewards this agent tests nothing."""

from __future__ import annotations

from typing import ClassVar

from intercode.agents.base import Feedback
from intercode.core.types import AgentOutput, Brief


class NoopAgent:
    """Submits without any other action."""

    name: ClassVar[str] = "noop"
    wants_score: bool = False
    max_turns: int | None = None

    def __init__(self) -> None:
        self._submitted = False

    def start(self, brief: Brief) -> None:  # noqa: ARG002
        """Begin an episode."""
        self._submitted = False

    def act(self, feedback: Feedback | None) -> AgentOutput | None:  # noqa: ARG002
        """Return ``submit``, then None."""
        if self._submitted:
            return None
        self._submitted = True
        return AgentOutput(action="submit")
