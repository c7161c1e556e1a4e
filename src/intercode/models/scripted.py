"""A model that answers from a script: for tests, examples and dry runs without an endpoint."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from intercode.errors import DataError, ModelRefusedError
from intercode.models.base import Completion, Message, Tool
from intercode.types import Usage


class ScriptedModel:
    """Answers with given texts.

    ``replies`` is a list, of which a conversation with k answers in it gets number k, so that
    every episode plays the whole script whatever runs beside it; or a function of the messages.
    """

    def __init__(
        self, replies: Sequence[str] | Callable[[list[Message]], str], name: str = "scripted"
    ) -> None:
        self.name = name
        self._replies = replies

    def __repr__(self) -> str:
        return f"ScriptedModel({self.name!r})"

    def complete(self, messages: Sequence[Message], *, tools: Sequence[Tool] = ()) -> Completion:  # noqa: ARG002
        """The scripted answer. Raises ModelRefusedError past the end of a list."""
        usage = Usage(requests=1)
        if callable(self._replies):
            return Completion(self._replies(list(messages)), usage, "stop", self.name)
        turn = sum(m["role"] == "assistant" for m in messages)
        if turn >= len(self._replies):
            raise ModelRefusedError(
                f"the script {self.name!r} has {len(self._replies)} replies and was asked for "
                f"number {turn + 1}; add replies or lower the turn limit"
            )
        return Completion(self._replies[turn], usage, "stop", self.name)


def read_script(path: Path) -> ScriptedModel:
    """A scripted model from a file holding a JSON list of strings. Raises DataError."""
    try:
        replies = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as e:
        raise DataError(f"{path}:{e.lineno}: no JSON: {e.msg}") from e
    except (OSError, UnicodeDecodeError) as e:
        raise DataError(f"cannot read the script {path}: {e}") from e
    if not isinstance(replies, list) or not all(isinstance(r, str) for r in replies):
        raise DataError(f"{path}: a script is a JSON list of strings, one for each turn")
    return ScriptedModel(replies, name=f"scripted:{path.name}")
