"""Plan & Solve: a numbered plan, each step an action, then a few more turns (paper, section 4)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from intercode.agents.base import Feedback
from intercode.agents.model_agent import ModelAgent
from intercode.agents.observation import ObservationLimits
from intercode.agents.options import check_integer
from intercode.agents.parsing import split_thought
from intercode.agents.plan_parsing import parse_plan, parse_plan_original
from intercode.core.types import AgentOutput, Brief


class PlanSolveAgent(ModelAgent):
    """Asks for a plan, then for code for each of its steps. The plan is carried out to its end.

    Every turn is scored, but the model is not told. ``refine``: how many more turns there are where
    the reward after the last step is below 1 (the paper: 3, in a table of its own); they end at 1.
    A step is the thought of its move.
    """

    name = "plan-solve"
    prompt_file = "plan_solve.txt"
    required_sections = (*ModelAgent.required_sections, "step")
    wants_score = True
    extra_requests = 1  # the plan is no turn

    def __init__(self, *, refine: int = 0, max_turns: int | None = 30, **settings: Any) -> None:
        super().__init__(max_turns=max_turns, **settings)
        check_integer("refine", refine, 0)
        self.refine = refine or 0
        self._steps: list[str] = []

    def metadata(self) -> dict[str, Any]:
        return {**super().metadata(), "refine": self.refine}

    @property
    def ends_when_solved(self) -> bool:  # type: ignore[override]
        """Not before the plan is carried out."""
        return not self._steps

    @property
    def original_limits(self) -> ObservationLimits:  # type: ignore[override]
        """What the authors' runner shows of an observation: less once the plan is carried out."""
        return ObservationLimits(1000, 25) if self._steps else ObservationLimits(250, 25)

    def start(self, brief: Brief) -> None:
        """Begin an episode."""
        self._steps = []
        self._planned = self._solved = False
        self._refined = 0
        super().start(brief)

    def add_feedback(self, feedback: Feedback) -> None:
        """Tell the model what came of its last turn."""
        self._solved = feedback.score is not None and feedback.score.success
        super().add_feedback(feedback)

    def request_move(self) -> AgentOutput | None:
        """The code of the next step; None after the last."""
        if not self._planned:
            self._request_plan()
        if self._steps:
            step = self._steps.pop(0)
            self.conversation.add_user(self.fill_prompt("step", step=step))
        elif self._solved or self._refined == self.refine:
            return None
        else:
            step = ""
            self._refined += 1
            self.conversation.add_user(self.fill_prompt("refine"))
        move = super().request_move()
        return replace(move, thought=move.thought or step) if move is not None else None

    def _request_plan(self) -> None:
        """Ask for the plan; it is never left out of the conversation again."""
        completion = self.conversation.request_answer()
        text, _ = split_thought(completion.text)
        self.add_answer(completion, text)
        self.conversation.pin()
        self._planned = True
        original = self.feedback == "original"
        self._steps = (
            parse_plan_original(text)
            if original
            else parse_plan(text) or [self.fill_prompt("task")]
        )
