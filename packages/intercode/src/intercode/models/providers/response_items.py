"""Requests and answers in the format of OpenAI's Responses API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from intercode.core.errors import ConfigError
from intercode.core.types import Usage
from intercode.models.base import Completion, Message, Tool, make_call
from intercode.models.options import GenerationOptions
from intercode.models.providers.chat_responses import (
    InvalidResponseError,
    count_or_none,
    parse_chat_logprobs,
)

ITEMS_KEY = "openai_responses"
"""The key under which a message's ``provider`` holds the items of an answer."""

ENCRYPTED_REASONING = "reasoning.encrypted_content"
"""What ``include`` asks for, so that reasoning can be sent back without being stored there."""

_UNKNOWN_OPTIONS = ("seed", "stop", "frequency_penalty", "presence_penalty", "token_ids")


def request_body(
    generation: GenerationOptions,
    messages: Sequence[Message],
    tools: Sequence[Tool],
    *,
    keep_reasoning: bool,
) -> dict[str, Any]:
    """Return a request without the model's name; the limit on the answer is ``max_tokens`` here.

    Nothing is stored by the endpoint. ``keep_reasoning`` asks it for encrypted reasoning, which is
    sent back in later turns; models without reasoning refuse that.
    """
    include = [ENCRYPTED_REASONING] if keep_reasoning else []
    if generation.logprobs or generation.top_logprobs:
        include.append("message.output_text.logprobs")
    effort = generation.reasoning_effort
    body: dict[str, Any] = {
        "temperature": generation.temperature,
        "top_p": generation.top_p,
        "top_logprobs": generation.top_logprobs,
        "max_tokens": generation.max_answer_tokens,
        "reasoning": {"effort": effort} if effort else None,
        "include": include or None,
        "store": False,
        "input": [item for message in messages for item in _items(message)],
        "tools": [_tool_item(tool) for tool in tools] or None,
    }
    body |= generation.extra
    return {name: value for name, value in body.items() if value is not None}


def require_known_options(generation: GenerationOptions) -> None:
    """Raise ConfigError for options that this API does not have."""
    given = [name for name in _UNKNOWN_OPTIONS if getattr(generation, name)]
    if given:
        raise ConfigError(
            f"the Responses API has no option {', '.join(given)}: leave it out, or use Chat "
            "Completions with the option api=chat"
        )


def _tool_item(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
        "strict": False,
    }


def _items(message: Message) -> list[dict[str, Any]]:
    """Return the input items of a message: those of an earlier answer unchanged, if it has them."""
    provider = message.get("provider")
    if isinstance(provider, Mapping) and isinstance(provider.get(ITEMS_KEY), list):
        return list(provider[ITEMS_KEY])
    text = message["content"]
    if message["role"] == "tool":
        call_id = message.get("tool_call_id", "")
        return [{"type": "function_call_output", "call_id": call_id, "output": text}]
    calls = message.get("tool_calls", [])
    items = [{"role": message["role"], "content": text}] if text or not calls else []
    for call in calls:
        items.append({"type": "function_call", "call_id": call["id"], **call["function"]})
    return items


def parse_answer(data: Mapping[str, Any], requests: int) -> Completion:
    """Return the completion in a decoded response. ``requests`` is how many were sent to get it.

    Raises InvalidResponseError.
    """
    output = data.get("output")
    if not isinstance(output, list) or not all(isinstance(item, Mapping) for item in output):
        raise InvalidResponseError("the response has no list of output items")
    try:
        parts = [p for i in output if i.get("type") == "message" for p in i["content"]]
        calls = tuple(
            make_call(i["call_id"], i["name"], i.get("arguments", "{}"))
            for i in output
            if i.get("type") == "function_call"
        )
        text = "".join(p.get("text") or p.get("refusal") or "" for p in parts)
        thoughts = [i for i in output if i.get("type") == "reasoning"]
        summary = [s["text"] for i in thoughts for s in i.get("summary") or ()]
    except (KeyError, TypeError, AttributeError) as e:
        raise InvalidResponseError(f"the response has an invalid output item: {e!r}") from e
    logprobs = [e for p in parts for e in p.get("logprobs") or ()]
    return Completion(
        text=text,
        usage=_parse_usage(data.get("usage"), requests),
        finish_reason=_finish_reason(data, bool(calls)),
        model=str(data.get("model") or ""),
        calls=calls,
        reasoning="\n\n".join(summary),
        provider={ITEMS_KEY: output} if thoughts else None,
        tokens=parse_chat_logprobs(logprobs),
    )


def _finish_reason(data: Mapping[str, Any], has_calls: bool) -> str | None:
    """Return the reason in the words of Chat Completions; None if the response has no status."""
    details = data.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    if reason:
        return {"max_output_tokens": "length"}.get(str(reason), str(reason))
    if data.get("status") != "completed":
        return None
    return "tool_calls" if has_calls else "stop"


def _parse_usage(usage: Any, requests: int) -> Usage:
    usage = usage if isinstance(usage, Mapping) else {}
    prompt, answer = usage.get("input_tokens_details"), usage.get("output_tokens_details")
    return Usage(
        count_or_none(usage.get("input_tokens")),
        count_or_none(usage.get("output_tokens")),
        requests,
        cached_tokens=count_or_none((prompt or {}).get("cached_tokens")),
        reasoning_tokens=count_or_none((answer or {}).get("reasoning_tokens")),
    )
