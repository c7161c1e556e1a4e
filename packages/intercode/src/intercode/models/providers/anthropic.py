"""Anthropic's models through their own client library (the extra ``models``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from intercode.core.types import Usage
from intercode.models.base import Completion, Message, Tool, make_call
from intercode.models.providers.client_library import (
    LibraryModel,
    alternating_turns,
    parse_arguments,
    system_text,
)
from intercode.models.transport.retry import AttemptError

PROVIDER = "anthropic"
DEFAULT_MAX_TOKENS = 8192
"""The limit on the answer's tokens if none is given: this protocol requires one."""


class AnthropicModel(LibraryModel):
    """A model of Anthropic.

    ``thinking`` is a number of tokens for reasoning, or the field itself, such as ``{"type":
    "adaptive"}``. The model's reasoning, with its signatures, is sent back unchanged in later
    turns. ``prompt_cache`` asks the endpoint to cache the conversation for the next turn.
    ``reasoning_effort`` becomes ``output_config.effort``.
    """

    library_name = prefix = PROVIDER

    def __init__(
        self,
        name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        thinking: int | Mapping[str, Any] | None = None,
        prompt_cache: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(
            name,
            base_url,
            api_key,
            options,
            provider=PROVIDER,
            default_address="https://api.anthropic.com",
            address_variables=("ANTHROPIC_BASE_URL",),
        )
        if isinstance(thinking, int):
            thinking = {"type": "enabled", "budget_tokens": thinking}
        self.thinking, self.prompt_cache = thinking, prompt_cache

    def metadata(self) -> dict[str, Any]:
        thinking = dict(self.thinking) if self.thinking else None
        return super().metadata() | {"thinking": thinking, "prompt_cache": self.prompt_cache}

    def connect(self) -> Any:
        return self._library.AsyncAnthropic(
            api_key=self._key,
            base_url=self._base_url,
            max_retries=0,
            default_headers=dict(self.generation.headers),
        )

    def request(self, messages: Sequence[Message], tools: Sequence[Tool]) -> dict[str, Any]:
        generation = self.generation
        stop = generation.stop
        request: dict[str, Any] = {
            "model": self.name,
            "max_tokens": generation.max_answer_tokens or DEFAULT_MAX_TOKENS,
            "stop_sequences": [stop] if isinstance(stop, str) else stop,
            "thinking": dict(self.thinking) if self.thinking else None,
            "cache_control": {"type": "ephemeral"} if self.prompt_cache else None,
            "system": system_text(messages),
            "tools": [_tool_spec(t) for t in tools] or None,
            "messages": alternating_turns(
                messages, ("assistant", "user"), "content", PROVIDER, _content_blocks
            ),
        }
        if generation.reasoning_effort:
            request["output_config"] = {"effort": generation.reasoning_effort}
        sampling = {"temperature": generation.temperature, "top_p": generation.top_p}
        body = {k: v for k, v in sampling.items() if v is not None} | dict(generation.extra)
        if body:
            request["extra_body"] = body  # the library has no parameters for them any more
        return {k: v for k, v in request.items() if v is not None}

    async def send(self, client: Any, request: dict[str, Any], seconds: float) -> Completion:
        if self.stream:
            silence = min(seconds, self.request_options.timeout)
            async with client.messages.stream(**request, timeout=silence) as stream:
                answer = await stream.get_final_message()
            if answer.stop_reason is None:
                raise AttemptError("the stream broke off", response_lost=True)
        else:
            answer = await client.messages.create(**request, timeout=seconds)
        dump = getattr(answer, "model_dump", None)  # invalid JSON arrives as text
        return self._parse_response(dump(mode="json", exclude_none=True) if dump else answer)

    def _parse_response(self, data: Any) -> Completion:
        if not isinstance(data, dict) or not isinstance(data.get("content"), list):
            raise AttemptError("the response has no content", response_lost=True)
        blocks = [b for b in data["content"] if isinstance(b, dict)]
        usage = data.get("usage") or {}
        cached = usage.get("cache_read_input_tokens") or 0
        written = usage.get("cache_creation_input_tokens") or 0
        prompt, completion = usage.get("input_tokens"), usage.get("output_tokens")
        total = None if prompt is None else prompt + cached + written
        cost = None
        if self.price and total is not None and completion is not None:
            cost = self.price.cost(total, completion, cached, written)
        thinking = (usage.get("output_tokens_details") or {}).get("thinking_tokens")
        return Completion(
            text="".join(b.get("text", "") for b in blocks if b.get("type") == "text"),
            usage=Usage(
                total, completion, 1, cached_tokens=cached, reasoning_tokens=thinking, cost=cost
            ),
            finish_reason=data.get("stop_reason"),
            model=str(data.get("model", "")),
            calls=tuple(
                make_call(b["id"], b["name"], b.get("input", {}))
                for b in blocks
                if b.get("type") == "tool_use"
            ),
            reasoning="".join(b.get("thinking", "") for b in blocks if b.get("type") == "thinking"),
            provider={PROVIDER: blocks} if any(b.get("type") != "text" for b in blocks) else None,
        )


def _tool_spec(tool: Tool) -> dict[str, Any]:
    schema = dict(tool.parameters)
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def _content_blocks(message: Message) -> list[dict[str, Any]]:
    text = message["content"]
    if message["role"] == "tool":
        call_id = message.get("tool_call_id", "")
        return [{"type": "tool_result", "tool_use_id": call_id, "content": text or "(no output)"}]
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text.strip() else []
    for call in message.get("tool_calls", ()):
        name = call["function"]["name"]
        block = {"type": "tool_use", "id": call["id"], "name": name, "input": parse_arguments(call)}
        blocks.append(block)
    return blocks or [{"type": "text", "text": "(empty)"}]
