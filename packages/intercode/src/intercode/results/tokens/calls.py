"""Calls of a model, with the tokens that a record has of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from intercode.core.types import Step, Trajectory
from intercode.results.statistics import metrics


@dataclass(frozen=True, slots=True)
class TokenCall:
    """One call of a model in an episode, as it was recorded.

    ``turn`` is the number of the step, from 0, and ``number`` that of the call in the step.
    ``continues`` says whether the conversation goes on from the call before; false where the record
    says that the prompt left something out, and where a conversation begins. Unknown values are
    None, or empty.
    """

    episode: str
    turn: int
    number: int = 0
    continues: bool = True
    prompt_ids: tuple[Any, ...] = ()
    ids: tuple[Any, ...] = ()
    logprobs: tuple[Any, ...] | None = None
    texts: tuple[str, ...] | None = None
    finish: str = ""
    stop: int | None = None
    model: str = ""
    tools: str = ""
    temperature: float | None = None
    is_raw: bool | None = None
    is_truncated: bool = False
    is_edited: bool = False
    is_cached: bool = False
    is_after_end: bool = False
    usage: tuple[int | None, int | None] = (None, None)
    text: str = ""
    has_reasoning: bool = False
    has_tool_calls: bool = False
    has_stop_texts: bool = False
    score: float | None = None

    @property
    def sequence(self) -> tuple[Any, ...]:
        """The ids of the prompt and of the reply. A position is an index in it."""
        return self.prompt_ids + self.ids

    @property
    def has_ids(self) -> bool:
        """Whether the engine gave both the ids of the prompt and those of the reply."""
        return bool(self.prompt_ids and self.ids)

    @property
    def has_any_ids(self) -> bool:
        """Whether the engine gave the ids of the prompt or those of the reply."""
        return bool(self.prompt_ids or self.ids)


def token_calls(episode: Trajectory) -> list[TokenCall]:
    """Return every call of the model in an episode, in order; those without ids, too."""
    return list(_calls(episode))


def _calls(episode: Trajectory) -> Iterator[TokenCall]:
    generation = episode.run.get("generation")
    settings = generation if isinstance(generation, Mapping) else {}
    limit = episode.run.get("max_turns")
    is_over = False
    is_first = True
    for turn, step in enumerate(episode.steps):
        if turn in episode.restarts:
            is_over, is_first = False, True
        is_late = is_over or (not episode.restarts and isinstance(limit, int) and turn >= limit)
        hides = any(step.context.get(name) for name in ("history", "conversation"))
        answers = [n for n, m in enumerate(step.messages) if m.get("role") == "assistant"]
        for number, at in enumerate(answers):
            begin = answers[number - 1] + 1 if number else 0
            added = step.messages[begin:at]
            begins = is_first or any(m.get("role") == "system" for m in added)
            yield TokenCall(
                episode.id,
                turn,
                number,
                continues=not begins and not hides,
                is_after_end=is_late,
                **_recorded(step.messages[at], settings),
                **_of_step(step, number, len(answers)),
            )
            is_first = False
        if metrics.is_submission(step) and not metrics.is_refused_answer(step):
            is_over = True


def _recorded(answer: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    given = answer.get("tokens")
    tokens = given if isinstance(given, Mapping) else {}
    temperature = tokens.get("temperature", settings.get("temperature"))
    stop = tokens.get("stop")
    extra = settings.get("extra")
    added = extra.get("stop") if isinstance(extra, Mapping) else None
    return {
        "prompt_ids": _tuple(tokens.get("prompt_ids")) or (),
        "ids": _tuple(tokens.get("ids")) or (),
        "logprobs": _tuple(tokens.get("logprobs")),
        "texts": _tuple(tokens.get("texts")),
        "finish": str(tokens.get("finish") or ""),
        "stop": stop if isinstance(stop, int) else None,
        "model": str(tokens.get("model") or ""),
        "tools": str(tokens.get("tools") or ""),
        "temperature": temperature if isinstance(temperature, int | float) else None,
        "is_raw": tokens.get("raw"),
        "is_truncated": bool(tokens.get("truncated")),
        "is_edited": bool(tokens.get("edited")),
        "text": str(answer.get("content") or ""),
        "has_reasoning": bool(answer.get("reasoning")),
        "has_tool_calls": bool(answer.get("tool_calls")),
        "has_stop_texts": bool(tokens.get("stop_texts") or settings.get("stop") or added),
    }


def _of_step(step: Step, number: int, count: int) -> dict[str, Any]:
    """Return what the step says of a call. A step has the usage of all its calls together, so that
    it is known for the only one."""
    usage = step.usage
    is_known = count == 1 and usage.requests == 1
    return {
        "usage": (usage.prompt_tokens, usage.completion_tokens) if is_known else (None, None),
        "is_cached": metrics.is_from_cache(step),
        "score": step.score_value if number == count - 1 else None,
    }


def _tuple(value: Any) -> tuple[Any, ...] | None:
    return tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else None
