"""Reading what an OpenAI-compatible endpoint sent back, sound or not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from intercode.core.types import Usage
from intercode.models.base import Call, Completion
from intercode.models.providers.chat_requests import NAME
from intercode.models.providers.chat_tokens import read_tokens


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
    """The completion in the body of a successful answer, of a chat or of a text.

    ``requests`` is how many were sent to get it. A null content is an empty text.
    Raises UnusableAnswerError.
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as e:
        raise UnusableAnswerError(f"the answer is no complete JSON ({len(body)} bytes)") from e
    if not isinstance(data, dict):
        raise UnusableAnswerError("the answer is JSON, but no object")
    if data.get("error"):  # some gateways report failures with status 200
        message, code = read_error(body)
        raise UnusableAnswerError(message, int(code) if code.isdecimal() else None)
    return read_data(data, requests)


def read_data(data: Mapping[str, Any], requests: int) -> Completion:
    """As ``read_answer``, for an answer that is no text any more."""
    try:
        choice = data["choices"][0]
        message = {"content": choice["text"]} if "text" in choice else dict(choice["message"])
    except (KeyError, IndexError, TypeError, ValueError) as e:
        raise UnusableAnswerError("the answer holds no choices[0].message") from e
    reasoning = message.get("reasoning_content") or message.get("reasoning") or ""
    details = message.get("reasoning_details")
    finish = choice.get("finish_reason")
    return Completion(
        text=_text(message.get("content")),
        usage=_usage(data.get("usage"), requests),
        finish_reason=finish if isinstance(finish, str) else None,
        model=str(data.get("model") or ""),
        calls=_calls(message),
        reasoning=reasoning if isinstance(reasoning, str) else "",
        provider={NAME: {"reasoning_details": details}} if details else None,
        tokens=read_tokens(data, choice),
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


def _calls(message: Mapping[str, Any]) -> tuple[Call, ...]:
    """Calls of tools; arguments that came as an object become JSON text again."""
    found = message.get("tool_calls") or []
    calls = []
    try:
        for number, call in enumerate(found):
            function = call["function"]
            arguments = function.get("arguments")
            if not isinstance(arguments, str):
                arguments = json.dumps({} if arguments is None else arguments)
            calls.append(
                Call(
                    id=str(call.get("id") or f"call_{number}"),
                    type="function",
                    function={"name": str(function["name"]), "arguments": arguments},
                )
            )
    except (KeyError, TypeError, AttributeError) as e:
        raise UnusableAnswerError(f"the answer's tool_calls cannot be read: {e!r}") from e
    return tuple(calls)


def _usage(usage: Any, requests: int) -> Usage:
    usage = usage if isinstance(usage, dict) else {}
    prompt, answer = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    cached = _count(prompt.get("cached_tokens")) if isinstance(prompt, dict) else None
    if cached is None:
        cached = _count(usage.get("prompt_cache_hit_tokens"))  # DeepSeek
    cost = usage.get("cost")  # OpenRouter
    return Usage(
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
        requests,
        cached_tokens=cached,
        reasoning_tokens=_count(answer.get("reasoning_tokens"))
        if isinstance(answer, dict)
        else None,
        cost=float(cost) if isinstance(cost, (int, float)) and not isinstance(cost, bool) else None,
    )


def _count(value: Any) -> int | None:
    sound = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if sound else None
