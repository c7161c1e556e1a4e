"""The Try Again strategy of the paper (section 4).

The model is sent the output and the reward of every turn.
"""

from __future__ import annotations

from typing import Any

from intercode.agents.model_agent import ModelAgent
from intercode.core.types import AgentOutput, Step
from intercode.models.options import check_bool


class TryAgainAgent(ModelAgent):
    """Asks a model for code until the reward is 1 or the turns are used up.

    If ``reward_in_feedback`` is False, the model is not sent the reward. The episode still ends at
    reward 1.
    """

    prompt_file = "try_again.txt"
    required_sections = (*ModelAgent.required_sections, "reward")
    wants_score = True

    def __init__(self, *, reward_in_feedback: bool = True, **settings: Any) -> None:
        super().__init__(**settings)
        check_bool("reward_in_feedback", reward_in_feedback)
        self.reward_in_feedback = reward_in_feedback

    def metadata(self) -> dict[str, Any]:
        return {**super().metadata(), "reward_in_feedback": self.reward_in_feedback}

    def act(self, feedback: Step | None) -> AgentOutput | None:
        """Return the next action. Returns None after a reward of 1 and at the turn limit."""
        if feedback is not None and feedback.score is not None and feedback.score.success:
            return None
        return super().act(feedback)

    def format_feedback(self, feedback: Step) -> str:
        """Return the output, followed by the reward."""
        feedback_text = super().format_feedback(feedback)
        if feedback.score is None or not self.reward_in_feedback:
            return feedback_text
        return (
            f"{feedback_text}\n{self.fill_prompt('reward', reward=f'{feedback.score.value:.4g}')}"
        )
