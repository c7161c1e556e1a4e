"""What every strategy that asks a language model shares: the loop, telling, reading, recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from intercode.agents.base import Feedback
from intercode.agents.conversation import Conversation
from intercode.agents.history import Function, History, too_long
from intercode.agents.languages import Language, language_of
from intercode.agents.observation import STYLES, Cut, told, told_as_originally
from intercode.agents.options import check_whole
from intercode.agents.parsing import EMPTY_BLOCK, Parsed, parse_answer
from intercode.agents.prompt import load_prompt
from intercode.core.errors import BudgetError, ModelError
from intercode.core.registry import unknown
from intercode.core.types import Brief, Move
from intercode.models.base import Completion, Message, Model, Tool

EMPTY_ANSWER = "(empty answer)"
OBSERVATION_LIMIT = 4000
"""Characters of an observation that a model is shown, unless told otherwise."""
_CUT_SHORT = ("length", "max_tokens", "max_output_tokens")
CUT_SHORT = "the answer reached its limit of tokens and was cut off"


class ModelAgent:
    """A conversation with a model in which code is run and its output told.

    ``prompt``: a file to use instead of the package's own. ``feedback``: ``standard``, or
    ``original`` for what the authors' runners told a model and took for code.
    ``observation_limit``: how many characters of an observation the model is shown (None: 4000,
    head and tail; in ``original`` as many as the strategy's runner did, its beginning).
    ``history``, ``history_tokens``: what is shown of a long conversation; see History. The whole of
    it is kept.

    A strategy sets ``name`` and ``prompt_file`` and overrides what it does otherwise: ``tools_for``
    and ``ask`` (what is asked), ``read`` (what an answer says), ``hear`` and ``describe`` (what the
    model is told).
    """

    name: ClassVar[str]
    prompt_file: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ("system", "task", "observation", "retry")
    wants_score: bool = False
    ends_when_solved: bool = True
    cut: Cut = Cut(1000, 50)
    """What the authors' runner of this strategy showed of an observation."""
    _watched: bool
    _over: bool
    _limit: BudgetError | None

    def __init__(
        self,
        *,
        model: Model,
        max_turns: int | None = 10,
        prompt: str | Path | None = None,
        feedback: Literal["standard", "original"] = "standard",
        observation_limit: int | None = None,
        history: str | Function = "full",
        history_tokens: int | None = None,
    ) -> None:
        check_whole("max_turns", max_turns)
        check_whole("observation_limit", observation_limit)
        if feedback not in STYLES:
            raise unknown("feedback", str(feedback), list(STYLES))
        self.model, self.max_turns, self.feedback = model, max_turns, feedback
        self.prompt = load_prompt(prompt, self.prompt_file, self.needs)
        self.observation_limit = observation_limit
        self.history = History(history, history_tokens)
        self.talk = Conversation(model, self.history)
        self._begin(Brief("", "", "bash"))

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation of this episode so far."""
        return tuple(self.talk.messages)

    def facts(self) -> dict[str, Any]:
        """What a run's record has to name: the prompt in full and every option."""
        return {
            "prompt": self.prompt.facts(), "max_turns": self.max_turns, "feedback": self.feedback,
            "observation_limit": self.observation_limit, "history": self.history.policy,
            "history_tokens": self.history.tokens,
        }  # fmt: skip

    def start(self, brief: Brief) -> None:
        """Begin an episode with the system and task messages."""
        self._begin(brief)
        self.talk = Conversation(self.model, self.history, self.tools_for(brief))
        self.talk.system(self.fill("system"))
        self.talk.tell(self.fill("task"))
        self.talk.pin()

    def act(self, feedback: Feedback | None) -> Move | None:
        """Tell the model what happened and ask it for the next action; None at the turn limit, and
        once an answer no longer fits. Raises ModelError where not even the task fits."""
        if self._limit is not None:
            raise self._limit
        if self._over or (self.max_turns is not None and self._turns >= self.max_turns):
            return None
        if feedback is not None and not self._watched:
            self.hear(feedback)
        self._watched = False
        self._turns += 1
        try:
            return self.ask()
        except BudgetError as e:
            if e.whole or not self.talk.spent.requests:
                raise
            self._limit = e  # raised at the next turn, so that what this one has spent is kept
            return Move(None, reply=str(e), **self.talk.turn())
        except ModelError as e:
            if not too_long(e) or not self.talk.answered:
                raise
            self._over = True
            return Move(None, reply=f"No room is left for an answer: {e}", **self.talk.turn())

    def watch(self, action: str, feedback: Feedback, before: Feedback | None = None) -> None:
        """Learn of a turn that somebody else took in this agent's place; the next ``act`` goes on
        from it, whatever feedback it is given. ``before``: what came of the agent's own last turn,
        where it has not been told yet."""
        if before is not None and not self._watched:
            self.hear(before)
        self._had_code, self._code, self._watched = True, action, True
        self.talk.tell(self.fill("watched", action=action, observation=self.shown(feedback)))

    # -------------------------------------------------- what a strategy may do otherwise
    def tools_for(self, brief: Brief) -> Sequence[Tool]:  # noqa: ARG002
        """The tools that the model may call in an episode."""
        return ()

    def hear(self, feedback: Feedback) -> None:
        """Tell the model what came of its last turn."""
        self.talk.tell(self.describe(feedback) if self._had_code else feedback.observation)

    def describe(self, feedback: Feedback) -> str:
        """What the model is told after a turn that held code."""
        return self.fill("observation", observation=self.shown(feedback))

    def ask(self) -> Move | None:
        """Ask once; the answer as a move."""
        completion = self.talk.ask()
        return self.move(completion, self.read(completion))

    def read(self, completion: Completion) -> Parsed:
        """What an answer says. The authors' runners execute an empty block as well."""
        parsed = parse_answer(completion.text, self.language)
        if self.feedback == "original" and parsed.why == EMPTY_BLOCK:
            return replace(parsed, code="")
        return parsed

    def keep(self, completion: Completion, text: str) -> None:
        """Have an answer stay in the conversation as ``text``, without thoughts in tags and what
        was imagined; how much that leaves out joins the turn's context."""
        whole = len(completion.text.strip())
        left = {"characters": whole, "shown": len(text)} if len(text) < whole else {}
        self.talk.note("answer", left)
        empty = "" if completion.calls else EMPTY_ANSWER
        self.talk.keep({**completion.message(), "content": text or empty})

    # -------------------------------------------------- what strategies use
    def fill(self, section: str, **values: object) -> str:
        """The text of a section of the prompt."""
        return self.prompt.fill(section, self._values | values)

    def shown(self, feedback: Feedback) -> str:
        """The part of an observation that the model is to see; a cut joins the turn's context."""
        if self.feedback == "original":
            cut = Cut(self.observation_limit or self.cut.characters, self.cut.rows)
            shown, left = told_as_originally(feedback, self.environment, cut, self._code)
        else:
            shown, left = told(feedback, self.observation_limit or OBSERVATION_LIMIT)
        self.talk.note("observation", left)
        return shown

    def move(self, completion: Completion, parsed: Parsed, message: str = "") -> Move:
        """An answer as a move, once it has joined the conversation without its thoughts."""
        parsed = self._whole(completion, parsed)
        self.keep(completion, parsed.text)
        for what, value in parsed.left_out.items():
            self.talk.note(what, value)
        self._had_code, self._code = parsed.code is not None, parsed.code or ""
        thought = "\n\n".join(t for t in (completion.reasoning, parsed.thought) if t)
        reply = "" if self._had_code else self.fill("retry", why=parsed.why)
        text = f"{message}\n{completion.text}" if message else completion.text
        return Move(parsed.code, text, thought, reply, **self.talk.turn())

    def _whole(self, completion: Completion, parsed: Parsed) -> Parsed:
        """The answer without its code where it was cut short: nobody knows what was to follow."""
        if self.feedback == "original" or completion.finish_reason is None:
            return parsed
        if completion.finish_reason.lower() in _CUT_SHORT:
            return replace(parsed, code=None, why=CUT_SHORT)
        return parsed

    def _begin(self, brief: Brief) -> None:
        self.environment = brief.environment
        self.language: Language = language_of(brief.environment)
        limits = [n for n in (brief.max_turns, self.max_turns) if n is not None]
        self._values: dict[str, object] = {
            "environment": brief.environment, "language": self.language.title,
            "fence": self.language.tags[0], "judged": self.language.judged,
            "turns": min(limits) if limits else "any number of",
            "query": brief.query, "notes": brief.notes,
        }  # fmt: skip
        example = f"example_{brief.environment}"
        if example in self.prompt.sections:
            self._values["example"] = self.prompt.fill(example, self._values)
        self._turns, self._code, self._had_code = 0, "", True
        self._watched = self._over = False
        self._limit = None
