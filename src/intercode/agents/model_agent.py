"""What every strategy that asks a language model shares: the conversation, asking, parsing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from intercode.agents.base import Feedback
from intercode.agents.languages import Language, language_of
from intercode.agents.parsing import parse_answer
from intercode.agents.prompting import clip, load_prompt
from intercode.errors import ConfigError
from intercode.models.base import Message, Model
from intercode.types import Brief, Move, Usage

EMPTY_ANSWER = "(empty answer)"


class ModelAgent:
    """A conversation with a model in which code is run and its output told.

    A strategy sets ``name``, ``prompt_file`` and ``wants_score`` and overrides ``describe`` or
    ``act``. ``prompt`` is a file to use instead of the package's own. ``observation_limit`` is how
    many characters of an observation the model is shown. The whole conversation is kept: the model
    has answered exactly as many times as there are assistant messages.
    """

    name: ClassVar[str]
    prompt_file: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ("system", "task", "observation", "retry")
    wants_score: bool = False

    def __init__(
        self,
        *,
        model: Model,
        max_turns: int | None = 10,
        prompt: str | Path | None = None,
        observation_limit: int = 4000,
    ) -> None:
        if max_turns is not None and max_turns < 1:
            raise ConfigError(f"max_turns is {max_turns}; an agent needs at least 1 turn")
        if observation_limit < 1:
            raise ConfigError(f"observation_limit is {observation_limit}; it must be at least 1")
        self.model = model
        self.max_turns = max_turns
        self.prompt = load_prompt(prompt, self.prompt_file, self.needs)
        self.observation_limit = observation_limit
        self._messages: list[Message] = []
        self._values: dict[str, object] = {}
        self._language: Language = language_of("bash")
        self._turns = 0
        self._had_code = True

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation of this episode so far."""
        return tuple(self._messages)

    def start(self, brief: Brief) -> None:
        """Begin an episode with the system and task messages."""
        self._language = language_of(brief.environment)
        limits = [n for n in (brief.max_turns, self.max_turns) if n is not None]
        self._values = {
            "environment": brief.environment,
            "language": self._language.title,
            "fence": self._language.tags[0],
            "judged": self._language.judged,
            "turns": min(limits) if limits else "any number of",
            "query": brief.query,
            "notes": brief.notes,
        }
        self._turns = 0
        self._had_code = True
        self._messages = [
            Message(role="system", content=self.prompt.fill("system", self._values)),
            Message(role="user", content=self.prompt.fill("task", self._values)),
        ]

    def act(self, feedback: Feedback | None) -> Move | None:
        """Tell the model what happened and ask it for the next action; None at the turn limit."""
        if self.max_turns is not None and self._turns >= self.max_turns:
            return None
        if feedback is not None:
            told = self.describe(feedback) if self._had_code else feedback.observation
            self._messages.append(Message(role="user", content=told))
        return self.ask()

    def describe(self, feedback: Feedback) -> str:
        """What the model is told after a turn that held code."""
        shown = clip(feedback.observation.strip("\n"), self.observation_limit)
        shown = shown or "(no output)"
        if feedback.timed_out:
            shown += "\n(It was stopped at the time limit.)"
        values = self._values | {"observation": shown}
        return self.prompt.fill("observation", values)

    def ask(self) -> Move:
        """The model's next answer as a move; it joins the conversation without its thoughts."""
        completion = self.model.complete(self._messages)
        parsed = parse_answer(completion.text, self._language)
        self._messages.append(Message(role="assistant", content=parsed.text or EMPTY_ANSWER))
        self._turns += 1
        self._had_code = parsed.code is not None
        return self._move(parsed.code, completion.text, parsed.thought, completion.usage)

    def _move(self, code: str | None, message: str, thought: str, usage: Usage) -> Move:
        reply = "" if code is not None else self.prompt.fill("retry", self._values)
        return Move(action=code, message=message, thought=thought, reply=reply, usage=usage)
