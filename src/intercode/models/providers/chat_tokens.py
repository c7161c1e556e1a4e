"""Token ids and log-probabilities, where an endpoint gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def parse_tokens(data: Mapping[str, Any], choice: Mapping[str, Any]) -> dict[str, Any]:
    """What an answer holds of ``prompt_ids``, ``ids``, ``logprobs``, ``texts`` and ``top``.

    OpenAI gives the last three in ``logprobs.content`` (the legacy endpoint in parallel lists),
    vLLM ids in ``prompt_token_ids`` and ``token_ids``, SGLang in ``response_token_ids``.
    """
    tokens: dict[str, Any] = {}
    prompt = _token_ids(choice.get("prompt_token_ids")) or _token_ids(data.get("prompt_token_ids"))
    ids = _token_ids(choice.get("token_ids")) or _token_ids(choice.get("response_token_ids"))
    if prompt:
        tokens["prompt_ids"] = prompt
    if ids:
        tokens["ids"] = ids
    found = choice.get("logprobs")
    if isinstance(found, Mapping):
        content = found.get("content")
        if isinstance(content, list):
            tokens |= _from_chat(content)
        elif isinstance(found.get("token_logprobs"), list):
            tokens |= _from_completions(found)
    return tokens


def _from_chat(content: list[Any]) -> dict[str, Any]:
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


def _from_completions(found: Mapping[str, Any]) -> dict[str, Any]:
    tokens: dict[str, Any] = {"logprobs": found["token_logprobs"]}
    if isinstance(found.get("tokens"), list):
        tokens["texts"] = [str(t) for t in found["tokens"]]
    if isinstance(found.get("top_logprobs"), list):
        tokens["top"] = found["top_logprobs"]
    return tokens


def _token_ids(value: Any) -> list[int] | None:
    sound = isinstance(value, list) and all(isinstance(i, int) for i in value)
    return value if sound and value else None
