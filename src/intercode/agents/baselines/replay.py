"""Plays recorded actions again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from intercode.agents.base import Feedback
from intercode.core.errors import UsageError
from intercode.core.types import AgentOutput, Brief

NO_CODE = "No code was recorded for this turn."


class ReplayAgent:
    """Plays ``actions[task id]`` in order, then stops. An action of None is a turn without code.

    With ``wants_score`` False no turn is scored and the episode does not end at reward 1: for logs
    of strategies that continue there or submit by themselves.
    """

    name: ClassVar[str] = "replay"
    max_turns: int | None = None

    def __init__(
        self, *, actions: Mapping[str, Sequence[str | None]], wants_score: bool = True
    ) -> None:
        self.actions = actions
        self.wants_score = wants_score
        self._remaining: list[str | None] = []

    def start(self, brief: Brief) -> None:
        """Begin an episode. Raises UsageError for a task that was not recorded."""
        if brief.task not in self.actions:
            raise UsageError(
                f"no actions are recorded for the task {brief.task!r}; "
                f"the record holds {len(self.actions)} other tasks"
            )
        self._remaining = list(self.actions[brief.task])

    def act(self, feedback: Feedback | None) -> AgentOutput | None:  # noqa: ARG002
        """Return the next recorded action, or None after the last."""
        if not self._remaining:
            return None
        action = self._remaining.pop(0)
        return AgentOutput(action=action, reply=NO_CODE if action is None else "")
