"""Single Turn: one action without any feedback (paper, section 4)."""

from __future__ import annotations

from pathlib import Path

from intercode.agents.base import Feedback
from intercode.agents.model_agent import ModelAgent
from intercode.models.base import Model
from intercode.types import Move


class SingleTurnAgent(ModelAgent):
    """Asks once. The turn is scored as it stands; ``max_turns`` is 1 whatever is asked for."""

    name = "single-turn"
    prompt_file = "single_turn.txt"
    needs = ("system", "task", "retry")
    wants_score = True

    def __init__(
        self, *, model: Model, max_turns: int | None = 1, prompt: str | Path | None = None
    ) -> None:
        super().__init__(model=model, max_turns=max_turns, prompt=prompt)
        self.max_turns = 1

    def act(self, feedback: Feedback | None) -> Move | None:
        """The one action, then None."""
        return self.ask() if feedback is None else None
