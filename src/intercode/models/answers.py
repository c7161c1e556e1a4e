"""Reading what a chat-completions endpoint sent back, sound or not."""

from __future__ import annotations

import json
from typing import Any

from intercode.models.base import Completion
from intercode.types import Usage


class UnusableAnswerError(Exception):
    """An answer without a completion in it. ``status`` is the error's own code if it has one."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def read_error(body: bytes) -> tuple[str, str]:
    """The (message, code) of an error body of any of the usual forms; the code may be empty."""
    text = body.decode("utf-8", "replace").strip()
    try:
        data = json.loads(text)
    except ValueError:
        return text[:500], ""
    error = data.get("error", data) if isinstance(data, dict) else data
    if not isinstance(error, dict):
        return str(error)[:500], ""
    message = error.get("message") or error.get("detail") or json.dumps(error)
    return str(message)[:500], str(error.get("code") or error.get("type") or "")


def read_answer(body: bytes, requests: int) -> Completion:
    """The completion in the body of a successful answer.

    ``requests`` is how many were sent to get it. A null content is an empty text.
    Raises UnusableAnswerError.
    """
    try:
        data = json.loads(body)
    except ValueError as e:
        raise UnusableAnswerError(f"the answer is no complete JSON ({len(body)} bytes)") from e
    if not isinstance(data, dict):
        raise UnusableAnswerError("the answer is JSON, but no object")
    if data.get("error"):  # some gateways report failures with status 200
        message, code = read_error(body)
        raise UnusableAnswerError(message, int(code) if code.isdecimal() else None)
    try:
        choice = data["choices"][0]
        content = choice["message"].get("content")
    except (KeyError, IndexError, TypeError, AttributeError) as e:
        raise UnusableAnswerError("the answer holds no choices[0].message") from e
    usage = data.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Completion(
        text=_text(content),
        usage=Usage(
            _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")), requests
        ),
        finish_reason=choice.get("finish_reason"),
        model=str(data.get("model") or ""),
    )


def _text(content: Any) -> str:
    """A message's content as text: a string, null, or a list of typed parts."""
    if content is None:
        return ""
    if isinstance(content, list):
        parts = (p.get("text") for p in content if isinstance(p, dict))
        return "".join(p for p in parts if isinstance(p, str))
    if not isinstance(content, str):
        raise UnusableAnswerError(f"the content is neither text nor null but {type(content)}")
    return content


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
