"""Parses the responses of OpenAI-compatible endpoints, valid or not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from intercode.core.types import Usage
from intercode.models.base import Completion, ToolCall, make_call
from intercode.models.providers.chat_requests import PROVIDER_KEY


def parse_tokens(data: Mapping[str, Any], choice: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of ``prompt_ids``, ``ids``, ``logprobs``, ``texts`` and ``top`` that a response
    holds.

    OpenAI sends the last three in ``logprobs.content`` (the legacy endpoint in parallel lists),
    vLLM sends ids in ``prompt_token_ids`` and ``token_ids``, SGLang in ``response_token_ids``.
    """
    tokens: dict[str, Any] = {}
    prompt = _token_ids(choice.get("prompt_token_ids")) or _token_ids(data.get("prompt_token_ids"))
    ids = _token_ids(choice.get("token_ids")) or _token_ids(choice.get("response_token_ids"))
    if prompt:
        tokens["prompt_ids"] = prompt
    if ids:
        tokens["ids"] = ids
    logprobs = choice.get("logprobs")
    if isinstance(logprobs, Mapping):
        content = logprobs.get("content")
        if isinstance(content, list):
            tokens |= parse_chat_logprobs(content)
        elif isinstance(logprobs.get("token_logprobs"), list):
            tokens |= _from_completions(logprobs)
    return tokens


def parse_chat_logprobs(content: list[Any]) -> dict[str, Any]:
    """Return ``logprobs``, ``texts`` and ``top`` of a list with one entry per token."""
    entries = [e for e in content if isinstance(e, Mapping)]
    if len(entries) != len(content) or not entries:
        return {}
    tokens: dict[str, Any] = {
        "logprobs": [e.get("logprob") for e in entries],
        "texts": [str(e.get("token", "")) for e in entries],
    }
    if any(e.get("top_logprobs") for e in entries):
        tokens["top"] = [_top_alternatives(e.get("top_logprobs")) for e in entries]
    return tokens


def _top_alternatives(others: Any) -> dict[str, Any]:
    entries = others if isinstance(others, list) else []
    return {str(o.get("token", "")): o.get("logprob") for o in entries if isinstance(o, Mapping)}


def _from_completions(logprobs: Mapping[str, Any]) -> dict[str, Any]:
    tokens: dict[str, Any] = {"logprobs": logprobs["token_logprobs"]}
    if isinstance(logprobs.get("tokens"), list):
        tokens["texts"] = [str(t) for t in logprobs["tokens"]]
    if isinstance(logprobs.get("top_logprobs"), list):
        tokens["top"] = logprobs["top_logprobs"]
    return tokens


def _token_ids(value: Any) -> list[int] | None:
    sound = isinstance(value, list) and all(isinstance(i, int) for i in value)
    return value if sound and value else None


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
        tokens=parse_tokens(data, choice),
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
