"""What is sent to OpenAI-compatible endpoints: a conversation, or a text made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from intercode.core.errors import ConfigError
from intercode.models.base import Message, Tool
from intercode.models.options import GenerationOptions

DEFAULT_TEMPLATE = "### {Role}:\n{content}\n\n"
"""One message of a plain-text conversation; see ``as_text``."""

PROVIDER_KEY = "openai"
"""Under which name a message's ``provider`` holds what these endpoints want back."""


def chat_messages(messages: Sequence[Message], thoughts: str | None) -> list[dict[str, Any]]:
    """The messages with nothing in them that such endpoints do not know.

    ``thoughts``: the field in which an answer's reasoning is sent back, if any.
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
    """Tools in the form of OpenAI's chat endpoints."""
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
    """A conversation as one text that ends where the answer begins.

    The template is one message: ``{content}``, and ``{role}`` in small letters or ``{Role}``. What
    stands in it before the content begins the answer.
    """
    said = [_fill_role(template, m["role"]).replace("{content}", m["content"]) for m in messages]
    return "".join(said) + _role_prefix(template, "assistant")


def stop_sequences(template: str) -> list[str]:
    """Where an answer ends that goes on with what somebody else says."""
    cue = _role_prefix(template, "user").rstrip()
    return ["\n" + cue] if cue else []


def validate_template(template: str | None) -> str:
    """The template, the package's own where there is none. Raises ConfigError."""
    template = DEFAULT_TEMPLATE if template is None else template
    if "{content}" not in template:
        raise ConfigError(f"the template {template!r} has no place for {{content}}")
    return template


def request_fields(generation: GenerationOptions, api: str) -> dict[str, Any]:
    """The generation parameters as fields of a request; the limit is ``max_tokens`` here."""
    fields: dict[str, Any] = {
        name: getattr(generation, name)
        for name in (
            "temperature", "top_p", "seed", "stop", "reasoning_effort", "frequency_penalty",
            "presence_penalty",
        )
    }  # fmt: skip
    fields["max_tokens"] = generation.max_answer_tokens
    top = generation.top_logprobs
    if api == "chat":
        fields |= {"logprobs": True if top else generation.logprobs, "top_logprobs": top}
    elif generation.logprobs or top:
        fields["logprobs"] = top or 1
    if generation.token_ids:
        fields["return_token_ids"] = True
    fields |= generation.extra
    return {k: v for k, v in fields.items() if v is not None}


def _fill_role(template: str, role: str) -> str:
    return template.replace("{role}", role).replace("{Role}", role.capitalize())


def _role_prefix(template: str, role: str) -> str:
    return _fill_role(template, role).partition("{content}")[0]
