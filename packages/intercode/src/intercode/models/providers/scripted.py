"""A model that answers from a script: for tests, examples and dry runs without an endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from intercode.core.decoding import parse_json
from intercode.core.errors import DataError, ModelRefusedError
from intercode.core.types import Usage
from intercode.models.base import Completion, Message, Model, Tool, make_call

Reply = str | Mapping[str, Any]
"""A text, or a dictionary of ``text``, ``reasoning`` and ``calls``; each call is a dictionary of
``name`` and ``arguments``."""


class ScriptedModel(Model):
    """Answers with given texts or tool calls.

    ``replies`` is a list, of which a conversation with k answers receives number k, so that every
    episode plays the whole script regardless of other episodes; or a function of the messages.
    """

    def __init__(
        self, replies: Sequence[Reply] | Callable[[list[Message]], Reply], name: str = "scripted"
    ) -> None:
        self.name = name
        self._replies = replies

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
        usage = Usage(requests=1)
        if isinstance(reply, str):
            return Completion(reply, usage, "stop", self.name)
        calls = tuple(
            make_call(call.get("id", f"call_{number}"), call["name"], call.get("arguments", {}))
            for number, call in enumerate(reply.get("calls", ()))
        )
        finish = "tool_calls" if calls else "stop"
        reasoning = str(reply.get("reasoning", ""))
        text = str(reply.get("text", ""))
        return Completion(text, usage, finish, self.name, calls=calls, reasoning=reasoning)


def read_script(path: Path) -> ScriptedModel:
    """Return a scripted model from a file with a JSON list of replies. Raises DataError."""
    try:
        replies = parse_json(path.read_bytes(), path)
    except OSError as e:
        raise DataError(f"cannot read the script {path}: {e}") from e
    if not isinstance(replies, list) or not all(map(_is_reply, replies)):
        raise DataError(
            f"{path}: a script must be a JSON list with one reply per turn: a text, or an object "
            "of text, reasoning and calls, each call with a name and arguments"
        )
    return ScriptedModel(replies, name=f"scripted:{path.name}")


def _is_reply(reply: Any) -> bool:
    if isinstance(reply, str):
        return True
    if not isinstance(reply, dict) or not reply.keys() <= {"text", "reasoning", "calls"}:
        return False
    calls = reply.get("calls", [])
    return isinstance(calls, list) and all(isinstance(c, dict) and "name" in c for c in calls)
