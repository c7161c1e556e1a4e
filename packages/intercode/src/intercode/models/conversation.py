"""The conversation between an agent and a model in one episode, and which part of it is sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from intercode.core.errors import ConfigError, ModelError, UsageError
from intercode.core.types import Usage
from intercode.models.base import Completion, Message, Model, Tool
from intercode.models.options import check_integer
from intercode.models.token_count import count_tokens
from intercode_sandbox.long_output import shorten
from intercode_sandbox.registry import load_object

EMPTY_ANSWER = "(empty answer)"
MAX_SHORTENINGS = 12
"""The number of times a conversation is shortened if an endpoint finds it too long."""
_REFUSED_USAGE = Usage(0, 0, 1, 0, 0, 0.0)
"""The usage of a refused request: no tokens, but one request."""


class Conversation:
    """The messages of an episode. The model is sent those that ``history`` selects.

    The model may call ``tools``. ``finish_turn`` returns what was added since the last turn, for
    the record.
    """

    def __init__(self, model: Model, history: History, tools: Sequence[Tool] = ()) -> None:
        self.model, self.history, self.tools = model, history, tuple(tools)
        self.messages: list[Message] = []
        self._begin = self._pinned = self._recorded = 0
        self._token_limit: int | None = None
        self._usage = Usage()
        self._context: dict[str, Any] = {}

    @property
    def turn_usage(self) -> Usage:
        """The usage of this turn's requests so far."""
        return self._usage

    @property
    def has_answer(self) -> bool:
        """Whether the model has answered in this episode."""
        return any(message["role"] == "assistant" for message in self.messages[self._begin :])

    def pin(self) -> None:
        """Keep all present messages in every later request."""
        self._pinned = len(self.messages) - self._begin

    def begin_again(self, messages: Sequence[Message]) -> None:
        """Continue with these messages, which are in every later request. Those so far are in none;
        they remain in the record."""
        self._begin, self._pinned = len(self.messages), len(messages)
        self.messages += messages

    def add_system(self, text: str) -> None:
        """Add a system message."""
        self.messages.append(Message(role="system", content=text))

    def add_user(self, text: str) -> None:
        """Add a user message, joined with the one before if that belongs to the same turn."""
        if len(self.messages) > self._recorded and self.messages[-1]["role"] == "user":
            before = self.messages.pop()["content"]
            text = f"{before}\n{text}"
        self.messages.append(Message(role="user", content=text))

    def add_tool_result(self, call: str, text: str) -> None:
        """Add the result of a tool call, by the call's id."""
        self.messages.append(Message(role="tool", content=text, tool_call_id=call))

    def add_context(self, name: str, value: Any) -> None:
        """Add an entry to this turn's context for the record, unless the value is empty."""
        if value:
            self._context[name] = value

    def request_answer(self) -> Completion:
        """Return the model's answer to the selected messages; ``add_answer`` adds it to the
        conversation.

        If the endpoint finds the conversation too long, more of it is left out and the request is
        repeated. Raises ModelError if that does not help, and as Model.complete.
        """
        selected, context = self._select()
        refusals: list[str] = []
        while True:
            try:
                completion = self.model.complete(selected, tools=self.tools)
                break
            except ModelError as e:
                if not is_context_overflow(e):
                    raise
                self._usage += _REFUSED_USAGE
                refusals.append(str(e))
                self.add_context("history", {**context, "refusals": refusals})
                self._token_limit = self._count(selected) * 3 // 4
                refused = selected
                selected, context = self._select()
                if selected == refused or len(refusals) == MAX_SHORTENINGS:
                    raise
        self._usage += completion.usage
        self.add_context("history", {**context, "refusals": refusals} if refusals else context)
        return completion

    def add_answer(self, completion: Completion, text: str) -> None:
        """Add an answer to the conversation as ``text``. The turn's context records how much that
        leaves out.

        An answer with token ids keeps the blanks around ``text``, so that the next prompt has it as
        sampled. If what is added differs in more than blanks, its tokens have ``edited``.
        """
        length = len(completion.text.strip())
        omitted = {"characters": length, "shown": len(text)} if len(text) < length else {}
        self.add_context("answer", omitted)
        content = text or ("" if completion.calls else EMPTY_ANSWER)
        message = completion.message()
        if "ids" in completion.tokens:
            if text and text == completion.text.strip():
                content = completion.text
            elif content != completion.text:
                message["tokens"] = {**message["tokens"], "edited": True}
        self.messages.append({**message, "content": content})

    def finish_turn(self) -> Mapping[str, Any]:
        """Return ``messages``, ``usage`` and ``context`` of this turn for its AgentOutput, and
        begin the next."""
        messages = tuple(self.messages[self._recorded :])
        turn = {"messages": messages, "usage": self._usage, "context": self._context}
        self._recorded, self._usage, self._context = len(self.messages), Usage(), {}
        return turn

    def _select(self) -> tuple[list[Message], dict[str, Any]]:
        sent = self.messages[self._begin :]
        return self.history.select(sent, self._pinned, self._count, self._token_limit)

    def _count(self, messages: Sequence[Message]) -> int:
        return count_tokens(self.model, messages)


_CONTEXT_OVERFLOW = re.compile(
    r"context.?(?:length|window|size|limit)|maximum (?:model|input) length"
    r"|prompt (?:is too long|contains \d+ tokens)|input is too long|too many (?:input )?tokens"
    r"|(?:input|prompt|token count)[^.]{0,60}(?:exceed|longer than|less than)"
    r"|reduce the length|`inputs` |HTTP 413",
    re.IGNORECASE,
)


def is_context_overflow(error: Exception) -> bool:
    """Return whether an endpoint refused because the conversation does not fit the model's context.

    Recognises the messages of OpenAI, Anthropic, Google, Mistral, Bedrock, Cohere, vLLM, SGLang,
    llama.cpp and TGI, and status 413.
    """
    return _CONTEXT_OVERFLOW.search(str(error)) is not None


TokenCounter = Callable[[Sequence[Message]], int]
"""Returns the number of tokens of some messages."""
HistoryFunction = Callable[[list[Message], TokenCounter], Sequence[Message]]
"""A user's own policy: returns the messages to send, out of all messages."""

MIN_CLIPPED_LENGTH = 200
"""A message of the newest turn is never clipped to fewer characters than this."""
_VALID_POLICIES = "it may be full, last:K (as in last:6) or package.module:function"
_LAST = re.compile(r"last:([1-9]\d*)")


class History:
    """A policy that selects messages of a conversation.

    ``policy`` is ``full``; ``last:K`` for the K newest turns, a turn being an answer of the model
    and what follows it; or a function of (messages, count), given as such or as
    ``package.module:function``, where ``count`` returns the tokens of a list of messages.
    ``tokens`` bounds the selection under every policy: the oldest turns are left out first, then
    the newest is clipped. Messages before the model's first turn are always selected, and a tool's
    result only together with its call.
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
        if match := _LAST.fullmatch(policy):
            self._last = int(match[1])
        else:
            self._function = _load_function(policy)

    def select(
        self,
        messages: Sequence[Message],
        pinned: int,
        count: TokenCounter,
        limit: int | None = None,
    ) -> tuple[list[Message], dict[str, Any]]:
        """Return the messages to send, and what was left out, for the turn's context.

        The first ``pinned`` messages are always selected. ``limit`` is a second bound in tokens. If
        a user's function fails, nothing is left out and the context says so.
        """
        head, turns = list(messages[:pinned]), list(split_turns(messages[pinned:]))
        context: dict[str, Any] = {}
        selected = turns if self._last is None else turns[-self._last :]
        if self._function is not None:
            selected = self._select_by_function(messages, head, turns, count, context)
        limits = [n for n in (self.tokens, limit) if n is not None]
        if limits:
            selected = fit_turns(head, selected, min(limits), count, context)
        if (omitted := len(turns) - len(selected)) > 0:
            context |= {"turns_left_out": omitted, "turns": len(turns)}
            head = _with_omission_note(head, omitted)
        if context:
            context["policy"] = self.policy
        return head + [m for turn in selected for m in turn], context

    def _select_by_function(
        self,
        messages: Sequence[Message],
        head: list[Message],
        turns: list[list[Message]],
        count: TokenCounter,
        context: dict[str, Any],
    ) -> list[list[Message]]:
        """Return the turns that the user's function selects, with calls and results complete."""
        assert self._function is not None
        try:
            messages_chosen = list(self._function(list(messages), count))
            rest = [m for m in messages_chosen if not any(m is h or m == h for h in head)]
            selected = [whole for turn in split_turns(rest) if (whole := _complete_turn(turn))]
        except Exception as e:  # a faulty function of the user must not end the episode
            context["failed"] = f"{type(e).__name__}: {e}"
            return turns
        newest = turns[-1:]
        if newest and (not selected or selected[-1][-1] != newest[0][-1]):
            selected += newest
        return selected


def split_turns(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Yield the messages by turn: an answer of the model with all that follows until the next
    answer."""
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
    limit: int,
    count: TokenCounter,
    context: dict[str, Any],
) -> list[list[Message]]:
    """Return the newest turns that fit into ``limit`` tokens together with the head.

    If not even the newest turn fits, its messages are clipped, and ``context`` records by how much.
    The newest turn is always returned, even if it remains too long.
    """
    sizes = [count(turn) for turn in turns]
    available = limit - count(head)
    first = 0
    while first < len(turns) - 1 and sum(sizes[first:]) > available:
        first += 1
    selected = turns[first:]
    if not selected or sizes[-1] <= available or first < len(turns) - 1:
        return selected
    newest = selected[-1]
    length = original_length = max(len(m["content"]) for m in newest)
    turn = newest
    while length > MIN_CLIPPED_LENGTH and count(turn) > available:
        length = max(length * 3 // 4, MIN_CLIPPED_LENGTH)
        turn = [cast(Message, {**m, "content": shorten(m["content"], length).text}) for m in newest]
    if turn is not newest:
        context["newest_turn"] = {"characters": original_length, "shown": length}
    return [*selected[:-1], turn]


def _with_omission_note(head: list[Message], omitted: int) -> list[Message]:
    """Return the head with a note on the number of omitted turns."""
    note = f"[{omitted} earlier turn{'s' * (omitted > 1)} left out of this conversation]"
    for at in reversed(range(len(head))):
        if head[at]["role"] == "user":
            noted = cast(Message, {**head[at], "content": f"{head[at]['content']}\n\n{note}"})
            return [*head[:at], noted, *head[at + 1 :]]
    return head


def _complete_turn(turn: list[Message]) -> list[Message]:
    """Return a turn without results whose calls are missing; empty if calls lack their results."""
    called = {call["id"] for m in turn for call in m.get("tool_calls", ())}
    answered = {m["tool_call_id"] for m in turn if m["role"] == "tool"}
    if called - answered:
        return []
    return [m for m in turn if m["role"] != "tool" or m["tool_call_id"] in called]


def _load_function(policy: str) -> HistoryFunction:
    try:
        function = load_object(policy)
    except UsageError as e:
        raise ConfigError(f"history is {policy!r}; {_VALID_POLICIES}: {e}") from e
    if not callable(function):
        raise ConfigError(f"history names {policy!r}, which is not a function")
    return cast(HistoryFunction, function)
