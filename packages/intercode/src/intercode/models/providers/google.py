"""Google's models through their own client library (the extra ``models``)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from intercode.core.types import Usage
from intercode.models.base import Completion, Message, Tool, ToolCall, make_call
from intercode.models.providers.client_library import (
    LibraryModel,
    alternating_turns,
    parse_arguments,
    system_text,
)
from intercode.models.transport.retry import AttemptError

PROVIDER = "google"
_VERTEX_VARIABLES = ("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE")
"""Variables with which the client library asks Vertex AI."""
GENERATION_FIELDS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "logprobs": "response_logprobs",
    "top_logprobs": "logprobs",
}
"""Our generation parameters and Google's names of them."""


class GoogleModel(LibraryModel):
    """A model of Google.

    ``thinking`` is a number of tokens for reasoning, or the field itself, such as
    ``{"thinking_level": "low"}``. The parts of an answer, thought signatures included, are sent
    back unchanged in later turns. ``extra`` is merged into the config of the request.
    """

    library_name, prefix = "google.genai", PROVIDER

    def __init__(
        self,
        name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        thinking: int | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        address, variable = _default_address()
        super().__init__(
            name,
            base_url,
            api_key,
            options,
            provider=PROVIDER,
            default_address=address,
            address_variables=(variable,),
        )
        if isinstance(thinking, int):
            thinking = {"thinking_budget": thinking, "include_thoughts": True}
        self.thinking = thinking

    def metadata(self) -> dict[str, Any]:
        return super().metadata() | {"thinking": dict(self.thinking) if self.thinking else None}

    def connect(self) -> Any:
        options = {"base_url": self._base_url, "headers": dict(self.generation.headers)}
        return self._library.Client(api_key=self._key, http_options=options).aio

    def request(self, messages: Sequence[Message], tools: Sequence[Tool]) -> dict[str, Any]:
        generation = self.generation
        config = {field: getattr(generation, name) for name, field in GENERATION_FIELDS.items()}
        stop = generation.stop
        config["stop_sequences"] = [stop] if isinstance(stop, str) else stop
        config["thinking_config"] = dict(self.thinking) if self.thinking else None
        if generation.reasoning_effort and not self.thinking:
            config["thinking_config"] = {"thinking_level": generation.reasoning_effort}
        config["system_instruction"] = system_text(messages)
        if tools:
            config["tools"] = [{"function_declarations": [_tool_spec(t) for t in tools]}]
        config |= generation.extra
        return {
            "model": self.name,
            "max_tokens": generation.max_answer_tokens,
            "config": {k: v for k, v in config.items() if v is not None},
            "contents": _convert_messages(messages),
        }

    async def send(self, client: Any, request: dict[str, Any], seconds: float) -> Completion:
        types = self._library.types
        config = {
            **request["config"],
            "max_output_tokens": request["max_tokens"],
            "http_options": {"timeout": max(int(seconds * 1000), 1)},
        }
        # from JSON, in which signatures, which are bytes, are base64 text
        contents = [types.Content.model_validate_json(json.dumps(c)) for c in request["contents"]]
        given = {"model": request["model"], "contents": contents, "config": config}
        if self.stream:
            stream = await self.without_silence(client.models.generate_content_stream(**given))
            return self._parse_response(_join(map(_dump, await self.collect(stream))))
        return self._parse_response(_dump(await client.models.generate_content(**given)))

    def _parse_response(self, data: dict[str, Any]) -> Completion:
        candidates = data.get("candidates") or []
        if not candidates:
            blocked = data.get("prompt_feedback")
            if blocked:
                reason = f"the prompt was blocked: {json.dumps(blocked)[:300]}"
                raise self.refusal(reason, 400)
            raise AttemptError("the response has no candidates", response_lost=True)
        parts = (candidates[0].get("content") or {}).get("parts") or []
        texts = [p for p in parts if "text" in p]
        calls = tuple(_tool_call(n, p) for n, p in enumerate(parts) if "function_call" in p)
        special = calls or any("thought_signature" in p or p.get("thought") for p in parts)
        return Completion(
            text="".join(p["text"] for p in texts if not p.get("thought")),
            usage=_parse_usage(data.get("usage_metadata") or {}),
            finish_reason=candidates[0].get("finish_reason"),
            model=str(data.get("model_version") or ""),
            calls=calls,
            reasoning="".join(p["text"] for p in texts if p.get("thought")),
            provider={PROVIDER: parts} if special else None,
            tokens=_parse_tokens(candidates[0].get("logprobs_result")),
        )


def _dump(answer: Any) -> dict[str, Any]:
    values: dict[str, Any] = answer.model_dump(mode="json", exclude_none=True)
    return values


def _join(chunks: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the answer that was sent in chunks: the parts of all, and for the rest what the last
    one says. Raises AttemptError if the stream broke off."""
    whole: dict[str, Any] = {}
    candidate: dict[str, Any] = {}
    parts: list[dict[str, Any]] = []
    for chunk in chunks:
        for piece in chunk.pop("candidates", None) or ():
            parts += (piece.pop("content", None) or {}).get("parts") or ()
            candidate |= piece
        whole |= chunk
    if not candidate.get("finish_reason") and not whole.get("prompt_feedback"):
        raise AttemptError("the stream broke off", response_lost=True)
    if candidate:
        whole["candidates"] = [{**candidate, "content": {"parts": parts}}]
    return whole


def _parse_usage(metadata: Mapping[str, Any]) -> Usage:
    """Return the usage. Reasoning is reported separately from the answer, but billed like it."""
    answer, thoughts = metadata.get("candidates_token_count"), metadata.get("thoughts_token_count")
    known = answer is not None or thoughts is not None
    return Usage(
        metadata.get("prompt_token_count"),
        (answer or 0) + (thoughts or 0) if known else None,
        1,
        cached_tokens=metadata.get("cached_content_token_count", 0) if metadata else None,
        reasoning_tokens=thoughts,
    )


def _parse_tokens(result: Any) -> dict[str, Any]:
    chosen = result.get("chosen_candidates") if isinstance(result, dict) else None
    if not chosen:
        return {}
    tokens: dict[str, Any] = {
        "logprobs": [c.get("log_probability") for c in chosen],
        "texts": [c.get("token", "") for c in chosen],
    }
    if all("token_id" in c for c in chosen):
        tokens["ids"] = [c["token_id"] for c in chosen]
    return tokens


def _tool_spec(tool: Tool) -> dict[str, Any]:
    schema = dict(tool.parameters)
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters_json_schema": schema,
    }


def _tool_call(number: int, part: Mapping[str, Any]) -> ToolCall:
    call = part["function_call"]
    return make_call(call.get("id") or f"call_{number}", call["name"], call.get("args", {}))


def _default_address() -> tuple[str, str]:
    """Return the address that the client library takes by itself, and the variable that replaces
    it."""
    vertex = any(os.environ.get(name, "").lower() in ("true", "1") for name in _VERTEX_VARIABLES)
    if not vertex:
        return "https://generativelanguage.googleapis.com", "GOOGLE_GEMINI_BASE_URL"
    place = [os.environ.get(f"GOOGLE_CLOUD_{name}", "") for name in ("PROJECT", "LOCATION")]
    return "/".join(["https://aiplatform.googleapis.com", *place]).rstrip("/"), (
        "GOOGLE_VERTEX_BASE_URL"
    )


def _convert_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    names: dict[str, str] = {}

    def content_parts(message: Message) -> list[dict[str, Any]]:
        names.update({c["id"]: c["function"]["name"] for c in message.get("tool_calls", ())})
        return _content_parts(message, names)

    return alternating_turns(messages, ("model", "user"), "parts", PROVIDER, content_parts)


def _content_parts(message: Message, names: Mapping[str, str]) -> list[dict[str, Any]]:
    text = message["content"]
    if message["role"] == "tool":
        call_id = message.get("tool_call_id", "")
        response = {"name": names.get(call_id, "tool"), "response": {"output": text}}
        return [{"function_response": response}]
    parts: list[dict[str, Any]] = [{"text": text}] if text else []
    for call in message.get("tool_calls", ()):
        function_call = {"name": call["function"]["name"], "args": parse_arguments(call)}
        parts.append({"function_call": function_call})
    return parts or [{"text": "(empty)"}]
