"""Single Turn: one action without feedback (paper, section 4)."""

from __future__ import annotations

from typing import Any

from intercode.agents.model_agent import ModelAgent
from intercode.core.types import AgentOutput, Step


class SingleTurnAgent(ModelAgent):
    """Asks a model for one answer. The state after that turn is scored; ``max_turns`` is 1."""

    prompt_file = "single_turn.txt"
    required_sections = ("system", "task", "retry")
    wants_score = True

    def __init__(self, *, max_turns: int | None = 1, **settings: Any) -> None:  # noqa: ARG002
        super().__init__(max_turns=1, **settings)

    def act(self, feedback: Step | None) -> AgentOutput | None:
        """Return the one action, then None."""
        return super().act(None) if feedback is None else None
