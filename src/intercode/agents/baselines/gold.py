"""Plays each task's own solution: what proves a dataset, and the upper end of every table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from intercode.agents.base import Feedback
from intercode.core.errors import GoldError
from intercode.core.types import AgentOutput, Brief


class GoldAgent:
    """Plays ``golds[task id]`` one by one, then submits; where an answer is what counts, what the
    last of them has printed."""

    name: ClassVar[str] = "gold"
    wants_score: bool = False
    max_turns: int | None = None

    def __init__(self, *, golds: Mapping[str, Sequence[str]]) -> None:
        self.golds = golds
        self._remaining: list[str] = []
        self._expects_answer = False

    def start(self, brief: Brief) -> None:
        """Begin an episode. Raises GoldError for a task that has no gold."""
        actions = self.golds.get(brief.task)
        if not actions:
            raise GoldError(f"the task {brief.task!r} has no gold to play")
        self._remaining, self._expects_answer = [*actions, "submit"], brief.expects_answer

    def act(self, feedback: Feedback | None) -> AgentOutput | None:
        """The next action of the gold; None once it has submitted."""
        if not self._remaining:
            return None
        action = self._remaining.pop(0)
        if self._expects_answer and feedback is not None and not self._remaining:
            action = f"{action} {feedback.observation.strip()}"
        return AgentOutput(action=action)
