"""A model that answers from a script: for tests, examples and dry runs without an endpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from intercode.core.decoding import parse_json
from intercode.core.errors import DataError, ModelRefusedError, UsageError
from intercode.core.types import Usage
from intercode.models.base import Completion, Message, Model, Tool, ToolCall, make_call

Reply = str | Mapping[str, Any]
"""One of the forms that ``ScriptedModel`` describes."""

_FORMS = (
    "a reply is a text, "
    '{"text": "...", "reasoning": "...", "calls": [{"name": "...", "arguments": {...}}]}, or '
    '{"role": "assistant", "content": "...", "tool_calls": [{"id": "...", "type": "function", '
    '"function": {"name": "...", "arguments": "..."}}]}'
)
_OWN_KEYS = {"text", "reasoning", "calls"}
_MESSAGE_KEYS = {
    *("role", "name", "content", "reasoning", "reasoning_content"),
    *("tool_calls", "provider", "tokens"),
}
_EMPTY: tuple[object, ...] = (None, "", [], {})
_CALL_KEYS = {"id", "name", "arguments"}
_MESSAGE_CALL_KEYS = {"id", "type", "function", "index"}


class ScriptedModel(Model):
    """Answers with given texts or tool calls.

    ``replies`` is a list, of which a conversation with k answers receives number k, so that every
    episode plays the whole script regardless of other episodes; or a function of the messages. A
    reply is a text; a dictionary of ``text``, ``reasoning`` and ``calls``, each call one of
    ``name``, ``arguments`` and ``id``, any of which but the name may be left out; or a message of
    OpenAI's form, with ``content`` and ``tool_calls``, whose other parts are empty or None. Raises
    UsageError for another reply.

    >>> from intercode.models import ScriptedModel
    >>> call = {"name": "bash", "arguments": {"command": "ls"}}
    >>> model = ScriptedModel(["I look around.", {"text": "", "calls": [call]}])
    >>> question = {"role": "user", "content": "What is here?"}
    >>> first = model.complete([question])
    >>> second = model.complete([question, first.message()])
    >>> first.text, second.calls[0]["function"]["name"]
    ('I look around.', 'bash')
    """

    def __init__(
        self, replies: Sequence[Reply] | Callable[[list[Message]], Reply], name: str = "scripted"
    ) -> None:
        self.name = name
        self._replies = replies if callable(replies) else _as_list(replies)
        for reply in () if callable(self._replies) else self._replies:
            self._completion(reply)

    def __repr__(self) -> str:
        return f"ScriptedModel({self.name!r})"

    def metadata(self) -> dict[str, Any]:
        return {"name": self.name, "endpoint": None, "generation": {}, "price": None}

    def complete(self, messages: Sequence[Message], *, tools: Sequence[Tool] = ()) -> Completion:  # noqa: ARG002
        """Return the scripted answer. Raises ModelRefusedError past the end of a list."""
        if callable(self._replies):
            return self._completion(self._replies(list(messages)))
        turn = sum(m["role"] == "assistant" for m in messages)
        if turn >= len(self._replies):
            raise ModelRefusedError(
                f"the script {self.name!r} has {len(self._replies)} replies and was asked for "
                f"number {turn + 1}; add replies or lower the turn limit"
            )
        return self._completion(self._replies[turn])

    def _completion(self, reply: Reply) -> Completion:
        text, reasoning, calls = _parts(reply)
        finish = "tool_calls" if calls else "stop"
        usage = Usage(requests=1)
        return Completion(text, usage, finish, self.name, calls=calls, reasoning=reasoning)


def _as_list(replies: Any) -> list[Reply]:
    if isinstance(replies, Iterable) and not isinstance(replies, str | bytes | Mapping | Set):
        return list(replies)
    raise UsageError(f"replies are a list or a function, not {replies!r:.80}")


def _parts(reply: object) -> tuple[str, str, tuple[ToolCall, ...]]:
    """Return the text, the reasoning and the calls of a reply. Raises UsageError."""
    if isinstance(reply, str):
        return reply, "", ()
    if not isinstance(reply, Mapping):
        raise UsageError(f"{reply!r:.200} is no reply: {_FORMS}")
    known = _OWN_KEYS if reply.keys() <= _OWN_KEYS else _MESSAGE_KEYS
    reply = {key: part for key, part in reply.items() if key in known or part not in _EMPTY}
    if not reply:
        raise UsageError(f"a reply without content: {_FORMS}")
    if (unknown := reply.keys() - known) or reply.get("role", "assistant") != "assistant":
        wrong = ", ".join(map(repr, sorted(unknown, key=str))) or f"the role {reply['role']!r}"
        raise UsageError(f"the reply {dict(reply)!r:.200} has {wrong}: {_FORMS}")
    own = known is _OWN_KEYS
    text, calls = (
        reply.get(key) for key in (("text", "calls") if own else ("content", "tool_calls"))
    )
    reasoning = reply.get("reasoning") or reply.get("reasoning_content")
    are_texts = all(part is None or isinstance(part, str) for part in (text, reasoning))
    if not are_texts or not isinstance(calls, list | tuple | None):
        raise UsageError(f"the reply {dict(reply)!r:.200} has a part of a wrong type: {_FORMS}")
    parsed = tuple(_parse_call(number, call) for number, call in enumerate(calls or ()))
    return text or "", reasoning or "", parsed


def _parse_call(number: int, call: object) -> ToolCall:
    if isinstance(call, Mapping) and isinstance(function := call.get("function", call), Mapping):
        keys = _CALL_KEYS if function is call else _MESSAGE_CALL_KEYS
        name, arguments = function.get("name"), function.get("arguments", {})
        is_known = call.keys() <= keys and function.keys() <= _CALL_KEYS
        call_id = call.get("id", f"call_{number}")
        are_texts = isinstance(name, str) and isinstance(call_id, str)
        if is_known and are_texts and isinstance(arguments, str | Mapping):
            return make_call(call_id, name, arguments)
    raise UsageError(f"{call!r:.200} is no call of a tool: {_FORMS}")


def read_script(path: Path) -> ScriptedModel:
    """Return a scripted model from a file with a JSON list of replies. Raises DataError."""
    try:
        replies = parse_json(path.read_bytes(), path)
    except OSError as e:
        raise DataError(f"cannot read the script {path}: {e}") from e
    if not isinstance(replies, list):
        raise DataError(f"{path}: a script is a JSON list with one reply per turn; {_FORMS}")
    try:
        return ScriptedModel(replies, name=f"scripted:{path.name}")
    except UsageError as e:
        raise DataError(f"{path}: {e}") from e
