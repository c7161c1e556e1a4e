"""Plays each task's own solution: it validates a dataset and gives the upper bound of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from intercode.agents.base import Feedback
from intercode.core.errors import GoldError
from intercode.core.types import AgentOutput, Brief


class GoldAgent:
    """Plays the actions of ``golds[task id]`` in order, then submits. If an answer is scored, it
    submits the last action's output."""

    name: ClassVar[str] = "gold"
    wants_score: bool = False
    max_turns: int | None = None

    def __init__(self, *, golds: Mapping[str, Sequence[str]]) -> None:
        self.golds = golds
        self._remaining: list[str] = []
        self._expects_answer = False

    def start(self, brief: Brief) -> None:
        """Begin an episode. Raises GoldError for a task without a gold."""
        actions = self.golds.get(brief.task)
        if not actions:
            raise GoldError(f"the task {brief.task!r} has no gold to play")
        self._remaining, self._expects_answer = [*actions, "submit"], brief.expects_answer

    def act(self, feedback: Feedback | None) -> AgentOutput | None:
        """Return the next action of the gold; None after it has submitted."""
        if not self._remaining:
            return None
        action = self._remaining.pop(0)
        if self._expects_answer and feedback is not None and not self._remaining:
            action = f"{action} {feedback.observation.strip()}"
        return AgentOutput(action=action)
