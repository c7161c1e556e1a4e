"""ReAct: a thought and an action in turns, until the model submits (paper, section 4)."""

from __future__ import annotations

import re

from intercode.agents.base import Feedback
from intercode.agents.model_agent import ModelAgent
from intercode.agents.observation import ObservationLimits
from intercode.agents.parsing import ParsedAnswer
from intercode.agents.react_parsing import NO_ACTION_REASON, parse_action_original, parse_react
from intercode.core.types import AgentOutput, Brief
from intercode.models.base import Completion


class ReactAgent(ModelAgent):
    """``Thought``, then ``Action``: ``execute[...]`` runs code, ``submit`` hands in and is what is
    scored. Where an answer holds a thought and no action, the action is asked for in the same turn,
    as the authors' runner does."""

    name = "react"
    prompt_file = "react.txt"
    required_sections = (*ModelAgent.required_sections, "action")
    original_limits = ObservationLimits(350, 25)
    requests_per_turn = 2  # at the most: for the thought, and for the action where it is missing

    def start(self, brief: Brief) -> None:
        """Begin an episode."""
        self._expects_answer = brief.expects_answer
        super().start(brief)

    def format_feedback(self, feedback: Feedback) -> str:
        """What the model is told after a turn that held code."""
        return self.fill_prompt(
            "observation", observation=self.visible_observation(feedback), turn=self._turns
        )

    def request_move(self) -> AgentOutput:
        """The next thought and action."""
        completion = self.conversation.request_answer()
        parsed = self.parse(completion)
        if parsed.reason != NO_ACTION_REASON:
            return self.make_move(completion, parsed)
        self.add_answer(completion, parsed.text)
        self.conversation.add_user(self.fill_prompt("action", turn=self._turns))
        action = self.conversation.request_answer()
        second = self.parse_action(action)
        thought = "\n\n".join(t for t in (completion.reasoning, parsed.thought) if t)
        whole = ParsedAnswer(second.code, thought, second.text, second.reason, second.context)
        return self.make_move(action, whole, message=completion.text)

    def parse(self, completion: Completion) -> ParsedAnswer:
        """The thought and the action of an answer."""
        if self.feedback == "original":
            return self._parse_original(completion.text)
        return parse_react(completion.text, self.language, self._expects_answer)

    def parse_action(self, completion: Completion) -> ParsedAnswer:
        """The action in the answer to the question for it."""
        text = completion.text.strip()
        label = f"Action {self._turns}:"
        if not text.lower().startswith("action"):
            text = f"{label} {text}"
        if self.feedback == "original":
            return self._parse_original_action(
                "", text.removeprefix(label).partition("\n")[0].strip(), text
            )
        return parse_react(text, self.language, self._expects_answer)

    def _parse_original(self, text: str) -> ParsedAnswer:
        """An answer as the authors' runner splits it, which asked for one that begins behind
        ``Thought N:`` and ends before ``Observation N:``."""
        said = text.partition(f"\nObservation {self._turns}:")[0].strip()
        bare = re.sub(rf"\AThought {self._turns}:[ ]?", "", said)
        parts = bare.split(f"\nAction {self._turns}: ")
        if len(parts) != 2:
            thought = bare.partition("\n")[0]
            return ParsedAnswer(None, thought, thought, NO_ACTION_REASON)
        return self._parse_original_action(parts[0].strip(), parts[1], said)

    def _parse_original_action(self, thought: str, action: str, text: str) -> ParsedAnswer:
        code, left = parse_action_original(action, self.environment)
        cut = {"action": {"characters_left_out": left}} if left else {}
        why = "" if code is not None else "the action holds no execute[...]"
        return ParsedAnswer(code, thought, text, why, cut)
