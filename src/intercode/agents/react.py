"""ReAct: a thought and an action in turns, until the model submits (paper, section 4)."""

from __future__ import annotations

import re

from intercode.agents.base import Feedback
from intercode.agents.model_agent import ModelAgent
from intercode.agents.observation import Cut
from intercode.agents.parsing import Parsed
from intercode.agents.react_parsing import NO_ACTION, original_action, parse_react
from intercode.core.types import Brief, Move
from intercode.models.base import Completion


class ReactAgent(ModelAgent):
    """``Thought``, then ``Action``: ``execute[...]`` runs code, ``submit`` hands in and is what is
    scored. Where an answer holds a thought and no action, the action is asked for in the same turn,
    as the authors' runner does."""

    name = "react"
    prompt_file = "react.txt"
    needs = (*ModelAgent.needs, "action")
    cut = Cut(350, 25)
    requests_a_turn = 2  # at the most: for the thought, and for the action where it is missing

    def start(self, brief: Brief) -> None:
        """Begin an episode."""
        self._answers = brief.answers
        super().start(brief)

    def describe(self, feedback: Feedback) -> str:
        """What the model is told after a turn that held code."""
        return self.fill("observation", observation=self.shown(feedback), turn=self._turns)

    def ask(self) -> Move:
        """The next thought and action."""
        completion = self.talk.ask()
        parsed = self.read(completion)
        if parsed.why != NO_ACTION:
            return self.move(completion, parsed)
        self.keep(completion, parsed.text)
        self.talk.tell(self.fill("action", turn=self._turns))
        action = self.talk.ask()
        second = self.read_action(action)
        thought = "\n\n".join(t for t in (completion.reasoning, parsed.thought) if t)
        whole = Parsed(second.code, thought, second.text, second.why, second.left_out)
        return self.move(action, whole, message=completion.text)

    def read(self, completion: Completion) -> Parsed:
        """The thought and the action of an answer."""
        if self.feedback == "original":
            return self._read_originally(completion.text)
        return parse_react(completion.text, self.language, self._answers)

    def read_action(self, completion: Completion) -> Parsed:
        """The action in the answer to the question for it."""
        text = completion.text.strip()
        label = f"Action {self._turns}:"
        if not text.lower().startswith("action"):
            text = f"{label} {text}"
        if self.feedback == "original":
            return self._executed("", text.removeprefix(label).partition("\n")[0].strip(), text)
        return parse_react(text, self.language, self._answers)

    def _read_originally(self, text: str) -> Parsed:
        """An answer as the authors' runner splits it, which asked for one that begins behind
        ``Thought N:`` and ends before ``Observation N:``."""
        said = text.partition(f"\nObservation {self._turns}:")[0].strip()
        bare = re.sub(rf"\AThought {self._turns}:[ ]?", "", said)
        parts = bare.split(f"\nAction {self._turns}: ")
        if len(parts) != 2:
            thought = bare.partition("\n")[0]
            return Parsed(None, thought, thought, NO_ACTION)
        return self._executed(parts[0].strip(), parts[1], said)

    def _executed(self, thought: str, action: str, text: str) -> Parsed:
        code, left = original_action(action, self.environment)
        cut = {"action": {"characters_left_out": left}} if left else {}
        why = "" if code is not None else "the action holds no execute[...]"
        return Parsed(code, thought, text, why, cut)
