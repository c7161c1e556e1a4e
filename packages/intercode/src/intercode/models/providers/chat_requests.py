"""Requests to OpenAI-compatible endpoints: chat messages, or one text rendered from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from intercode.core.errors import ConfigError
from intercode.models.base import Message, Tool
from intercode.models.options import GenerationOptions

DEFAULT_TEMPLATE = "### {Role}:\n{content}\n\n"
"""One message of a conversation rendered as text; see ``render_prompt``."""

PROVIDER_KEY = "openai"
"""The key under which a message's ``provider`` holds the data of these endpoints."""


def chat_messages(messages: Sequence[Message], thoughts: str | None) -> list[dict[str, Any]]:
    """Return the messages with only the fields that chat endpoints know.

    ``thoughts`` is the field in which an answer's reasoning is sent back, if any.
    """
    return [_chat_message(m, thoughts) for m in messages]


def _chat_message(message: Message, thoughts: str | None) -> dict[str, Any]:
    sent: dict[str, Any] = {"role": message["role"], "content": message["content"]}
    if calls := message.get("tool_calls"):
        sent["tool_calls"] = calls
        sent["content"] = message["content"] or None
    if "tool_call_id" in message:
        sent["tool_call_id"] = message["tool_call_id"]
    if thoughts and "reasoning" in message:
        sent[thoughts] = message["reasoning"]
    provider = message.get("provider")
    if isinstance(provider, Mapping) and isinstance(provider.get(PROVIDER_KEY), Mapping):
        sent |= provider[PROVIDER_KEY]
    return sent


def tool_specs(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Return tools in the form of OpenAI's chat endpoints."""
    return [
        {
            "type": "function",
            "function": {
                "name": t.name,
                "description": t.description,
                "parameters": dict(t.parameters),
            },
        }
        for t in tools
    ]


def render_prompt(messages: Sequence[Message], template: str) -> str:
    """Render a conversation as one text that ends where the answer begins.

    The template is that of one message: ``{content}``, and ``{role}`` in lower case or ``{Role}``
    capitalised. The part before the content introduces the answer.
    """
    rendered = [
        _fill_role(template, m["role"]).replace("{content}", m["content"]) for m in messages
    ]
    return "".join(rendered) + _role_prefix(template, "assistant")


def stop_sequences(template: str) -> list[str]:
    """Return the sequences at which an answer ends that continues with another role's message."""
    prefix = _role_prefix(template, "user").rstrip()
    return ["\n" + prefix] if prefix else []


def validate_template(template: str | None) -> str:
    """Return the template, or the default one for None. Raises ConfigError."""
    template = DEFAULT_TEMPLATE if template is None else template
    if "{content}" not in template:
        raise ConfigError(f"the template {template!r} must contain {{content}}")
    return template


def request_fields(generation: GenerationOptions, api: str) -> dict[str, Any]:
    """Return the generation parameters as fields of a request; the limit is ``max_tokens`` here."""
    fields: dict[str, Any] = {
        name: getattr(generation, name)
        for name in (
            "temperature",
            "top_p",
            "seed",
            "stop",
            "reasoning_effort",
            "frequency_penalty",
            "presence_penalty",
        )
    }
    fields["max_tokens"] = generation.max_answer_tokens
    top = generation.top_logprobs
    if api == "chat":
        fields |= {"logprobs": True if top else generation.logprobs, "top_logprobs": top}
    elif generation.logprobs or top:
        fields["logprobs"] = top or 1
    if generation.token_ids:  # vLLM and SGLang; llama.cpp
        fields |= {"return_token_ids": True, "return_tokens": True, "verbose": True}
    fields |= generation.extra
    return {k: v for k, v in fields.items() if v is not None}


def _fill_role(template: str, role: str) -> str:
    return template.replace("{role}", role).replace("{Role}", role.capitalize())


def _role_prefix(template: str, role: str) -> str:
    return _fill_role(template, role).partition("{content}")[0]
