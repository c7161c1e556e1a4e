"""Reflexion: a task is begun again after a reflection on what went wrong (Shinn et al. 2023).

The model plays the task as with ``react``. If the reward of the final state is below 1, it is sent
that reward and asked for a reflection. The environment is reset, and a new conversation begins, in
which the task is followed by all reflections so far (arXiv 2303.11366). The prompt is
``prompts/reflexion.txt``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from intercode.agents.parsing import split_thought
from intercode.agents.react import ReactAgent
from intercode.core.errors import ModelError
from intercode.core.types import Brief, Step
from intercode.models.conversation import is_context_overflow
from intercode.models.options import check_integer


class ReflexionAgent(ReactAgent):
    """Plays as react, and begins an unsolved task again after a reflection on it.

    It does so up to ``max_restarts`` times. Of the score, the model is sent the reward alone, and
    only before a reflection. A reflection is recorded with the first turn after it, and is no turn
    itself.
    """

    prompt_file = "reflexion.txt"
    required_sections = (*ReactAgent.required_sections, "reflect", "reflections")
    placeholders = frozenset({"reflections"})
    extra_requests = 1  # the reflection

    def __init__(self, *, max_restarts: int = 2, **settings: Any) -> None:
        super().__init__(**settings)
        check_integer("max_restarts", max_restarts, 0)
        self.max_restarts = max_restarts or 0
        self._reflections: list[str] = []

    def metadata(self) -> dict[str, Any]:
        return {**super().metadata(), "max_restarts": self.max_restarts}

    def start(self, brief: Brief) -> None:
        self._reflections = []
        self._given_brief = brief
        super().start(brief)

    def restart(self, feedback: Step) -> bool:
        """Request a reflection, and begin the conversation of the next attempt.

        Returns False if no room is left in the context of the model.
        """
        assert feedback.score is not None
        self.add_feedback(feedback)
        reward = f"{feedback.score.value:.4g}"
        self.conversation.add_user(self.fill_prompt("reflect", reward=reward))
        try:
            completion = self.conversation.request_answer()
        except ModelError as e:
            if not is_context_overflow(e):
                raise
            return False
        text, _ = split_thought(completion.text)
        self.conversation.add_answer(completion, text)
        self._reflections.append(f"{len(self._reflections) + 1}. {text}")
        reflections = self.fill_prompt("reflections", reflections="\n".join(self._reflections))
        notes = "\n\n".join(filter(None, (self._given_brief.notes, reflections)))
        conversation = self.conversation
        super().start(replace(self._given_brief, notes=notes))
        conversation.begin_again(self.conversation.messages)
        self.conversation = conversation
        return True
