"""Which part of a long conversation a model is shown, measured in its own tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from intercode.agents.options import check_integer
from intercode.agents.prompt import clip
from intercode.core.errors import ConfigError, UsageError
from intercode.core.registry import load_object
from intercode.models.base import Message

TokenCounter = Callable[[Sequence[Message]], int]
"""How many tokens of the model some messages take."""
HistoryFunction = Callable[[list[Message], TokenCounter], Sequence[Message]]
"""A user's own policy: the messages to show, of all that there are."""

MIN_CLIPPED_LENGTH = 200
"""Characters to which a message of the newest turn is clipped at the most."""
_VALID_POLICIES = "it may be full, last:K (as in last:6) or package.module:function"
_LAST = re.compile(r"last:([1-9]\d*)")
_CONTEXT_OVERFLOW = re.compile(
    r"context.?(?:length|window|size|limit)|maximum (?:model|input) length"
    r"|prompt (?:is too long|contains \d+ tokens)|input is too long|too many (?:input )?tokens"
    r"|(?:input|prompt|token count)[^.]{0,60}(?:exceed|longer than|less than)"
    r"|reduce the length|`inputs` |HTTP 413",
    re.IGNORECASE,
)


def is_context_overflow(error: Exception) -> bool:
    """Whether an endpoint refused because the conversation does not fit into the model's context:
    by the words of OpenAI, Anthropic, Google, Mistral, Bedrock, Cohere, vLLM, SGLang, llama.cpp and
    TGI, or by status 413."""
    return _CONTEXT_OVERFLOW.search(str(error)) is not None


class History:
    """What is kept of a conversation.

    ``policy``: ``full``; ``last:K``, the K newest turns, a turn being an answer of the model with
    what it was told of it; ``package.module:function``, or a function, of (messages, count), where
    ``count`` tells the tokens of a list of messages. ``tokens`` bounds the whole whatever the
    policy: the oldest turns go first, then the newest one is clipped. What was said before the
    model's first turn is always kept, and a tool's result with its call.
    """

    def __init__(self, policy: str | HistoryFunction = "full", tokens: int | None = None) -> None:
        check_integer("history_tokens", tokens)
        if not isinstance(policy, str) and not callable(policy):
            raise ConfigError(f"history is {policy!r}; {_VALID_POLICIES}")
        self.tokens = tokens
        name = getattr(policy, "__qualname__", type(policy).__name__)
        self.policy = policy if isinstance(policy, str) else name
        self._last: int | None = None
        self._function: HistoryFunction | None = None if isinstance(policy, str) else policy
        if not isinstance(policy, str) or policy == "full":
            return
        if found := _LAST.fullmatch(policy):
            self._last = int(found[1])
        else:
            self._function = _load_function(policy)

    def select(
        self, messages: Sequence[Message], pinned: int, count: TokenCounter, most: int | None = None
    ) -> tuple[list[Message], dict[str, Any]]:
        """The messages to send, and what was left out of them, for a move's context.

        The first ``pinned`` are always kept. ``most``: a bound in tokens beside that of this
        policy. A user's function that fails leaves everything in, which the context tells.
        """
        head, turns = list(messages[:pinned]), list(split_turns(messages[pinned:]))
        about: dict[str, Any] = {}
        kept = turns if self._last is None else turns[-self._last :]
        if self._function is not None:
            kept = self._select_by_function(messages, head, turns, count, about)
        limits = [n for n in (self.tokens, most) if n is not None]
        if limits:
            kept = fit_turns(head, kept, min(limits), count, about)
        if (missing := len(turns) - len(kept)) > 0:
            about |= {"turns_left_out": missing, "turns": len(turns)}
            head = _with_omission_note(head, missing)
        if about:
            about["policy"] = self.policy
        return head + [m for turn in kept for m in turn], about

    def _select_by_function(
        self,
        messages: Sequence[Message],
        head: list[Message],
        turns: list[list[Message]],
        count: TokenCounter,
        about: dict[str, Any],
    ) -> list[list[Message]]:
        """The turns of the user's function, made sound."""
        assert self._function is not None
        try:
            chosen = list(self._function(list(messages), count))
            rest = [m for m in chosen if not any(m is h or m == h for h in head)]
            kept = [whole for turn in split_turns(rest) if (whole := _complete_turn(turn))]
        except Exception as e:  # whatever a user's function does, the episode goes on
            about["failed"] = f"{type(e).__name__}: {e}"
            return turns
        newest = turns[-1:]
        if newest and (not kept or kept[-1][-1] != newest[0][-1]):
            kept += newest
        return kept


def split_turns(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """The messages by turns: an answer of the model with all that follows until the next."""
    turn: list[Message] = []
    for message in messages:
        if message["role"] == "assistant" and turn:
            yield turn
            turn = []
        turn.append(message)
    if turn:
        yield turn


def fit_turns(
    head: Sequence[Message],
    turns: list[list[Message]],
    most: int,
    count: TokenCounter,
    about: dict[str, Any],
) -> list[list[Message]]:
    """The newest turns that fit below ``most`` tokens with the head; of the newest as much as does.

    ``about`` is told what was clipped. The newest turn stays, if need be too long.
    """
    sizes = [count(turn) for turn in turns]
    room = most - count(head)
    first = 0
    while first < len(turns) - 1 and sum(sizes[first:]) > room:
        first += 1
    kept = turns[first:]
    if not kept or sizes[-1] <= room or first < len(turns) - 1:
        return kept
    whole = kept[-1]
    limit = longest = max(len(m["content"]) for m in whole)
    turn = whole
    while limit > MIN_CLIPPED_LENGTH and count(turn) > room:
        limit = max(limit * 3 // 4, MIN_CLIPPED_LENGTH)
        turn = [cast(Message, {**m, "content": clip(m["content"], limit)}) for m in whole]
    if turn is not whole:
        about["newest_turn"] = {"characters": longest, "shown": limit}
    return [*kept[:-1], turn]


def _with_omission_note(head: list[Message], missing: int) -> list[Message]:
    """The head with a word on what is missing behind it."""
    note = f"[{missing} earlier turn{'s' * (missing > 1)} left out of this conversation]"
    for at in reversed(range(len(head))):
        if head[at]["role"] == "user":
            told = cast(Message, {**head[at], "content": f"{head[at]['content']}\n\n{note}"})
            return [*head[:at], told, *head[at + 1 :]]
    return head


def _complete_turn(turn: list[Message]) -> list[Message]:
    """A turn without results whose calls are missing; empty where calls lack their results."""
    called = {call["id"] for m in turn for call in m.get("tool_calls", ())}
    told = {m["tool_call_id"] for m in turn if m["role"] == "tool"}
    if called - told:
        return []
    return [m for m in turn if m["role"] != "tool" or m["tool_call_id"] in called]


def _load_function(policy: str) -> HistoryFunction:
    try:
        function = load_object(policy)
    except UsageError as e:
        raise ConfigError(f"history is {policy!r}; {_VALID_POLICIES}: {e}") from e
    if not callable(function):
        raise ConfigError(f"history names {policy!r}, which is no function")
    return cast(HistoryFunction, function)
