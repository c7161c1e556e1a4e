"""Parses the responses of OpenAI-compatible endpoints, valid or not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from intercode.core.types import Usage
from intercode.models.base import Completion, ToolCall, make_call
from intercode.models.providers.chat_requests import PROVIDER_KEY
from intercode.models.tokens import read_tokens


class InvalidResponseError(Exception):
    """A response without a completion. ``status`` is the error's own code, if it has one."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def parse_error(body: bytes) -> tuple[str, str]:
    """Return the (message, code) of an error body in any of the usual forms; the code may be
    empty."""
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


def parse_response(
    body: bytes,
    requests: int,
    parse: Callable[[Mapping[str, Any], int], Completion],
    decode: Callable[[bytes], Any] = json.loads,
) -> Completion:
    """Return the completion in the body of a successful response, which ``parse`` reads once
    ``decode`` has made data of it. ``requests`` is how many were sent to get it. Raises
    InvalidResponseError."""
    try:
        data = decode(body)
    except (ValueError, RecursionError) as e:
        raise InvalidResponseError(f"the response is not complete JSON ({len(body)} bytes)") from e
    if not isinstance(data, dict):
        raise InvalidResponseError("the response is JSON, but not an object")
    if data.get("error"):  # some gateways report failures with status 200
        message, code = parse_error(json.dumps(data).encode())
        raise InvalidResponseError(message, int(code) if code.isdecimal() else None)
    return parse(data, requests)


def parse_response_data(data: Mapping[str, Any], requests: int) -> Completion:
    """Return the completion in a decoded response of a chat or text endpoint.

    A null content becomes an empty text, and a refusal of the model the text. Raises
    InvalidResponseError.
    """
    try:
        choice = data["choices"][0]
        message = {"content": choice["text"]} if "text" in choice else dict(choice["message"])
    except (KeyError, IndexError, TypeError, ValueError) as e:
        raise InvalidResponseError("the response has no choices[0].message") from e
    reasoning = message.get("reasoning_content") or message.get("reasoning") or ""
    details = message.get("reasoning_details")
    finish = choice.get("finish_reason")
    return Completion(
        text=_content_text(message.get("content")) or _content_text(message.get("refusal")),
        usage=_parse_usage(data.get("usage"), requests),
        finish_reason=finish if isinstance(finish, str) else None,
        model=str(data.get("model") or ""),
        calls=_tool_calls(message),
        reasoning=reasoning if isinstance(reasoning, str) else "",
        provider={PROVIDER_KEY: {"reasoning_details": details}} if details else None,
        tokens=read_tokens(data),
    )


def _content_text(content: Any) -> str:
    """Return a message's content as text. It is a string, null, or a list of typed parts."""
    if content is None:
        return ""
    if isinstance(content, list):
        parts = (p.get("text") for p in content if isinstance(p, dict))
        return "".join(p for p in parts if isinstance(p, str))
    if not isinstance(content, str):
        raise InvalidResponseError(f"the content is neither text nor null but {type(content)}")
    return content


def _tool_calls(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """Return a message's tool calls; arguments that arrived as an object become JSON text."""
    calls = []
    try:
        for number, call in enumerate(message.get("tool_calls") or []):
            function, call_id = call["function"], call.get("id") or f"call_{number}"
            arguments = function.get("arguments")
            given = {} if arguments is None else arguments
            calls.append(make_call(call_id, function["name"], given))
    except (KeyError, TypeError, AttributeError) as e:
        raise InvalidResponseError(f"the response has invalid tool_calls: {e!r}") from e
    return tuple(calls)


def _parse_usage(usage: Any, requests: int) -> Usage:
    usage = usage if isinstance(usage, dict) else {}
    prompt, answer = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    cached = count_or_none(prompt.get("cached_tokens")) if isinstance(prompt, dict) else None
    if cached is None:
        cached = count_or_none(usage.get("prompt_cache_hit_tokens"))  # DeepSeek
    cost = usage.get("cost")  # OpenRouter
    return Usage(
        count_or_none(usage.get("prompt_tokens")),
        count_or_none(usage.get("completion_tokens")),
        requests,
        cached_tokens=cached,
        reasoning_tokens=count_or_none(answer.get("reasoning_tokens"))
        if isinstance(answer, dict)
        else None,
        cost=float(cost) if isinstance(cost, (int, float)) and not isinstance(cost, bool) else None,
    )


def count_or_none(value: Any) -> int | None:
    """Return a count that a response holds; None for anything else."""
    sound = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if sound else None
