"""Language models: any OpenAI-compatible endpoint, native clients through extras, or a script; with
limits, prices and a cache."""

from __future__ import annotations

from intercode.models.base import Call, Completion, Message, Model, Tool
from intercode.models.budget import Budget, Limits
from intercode.models.limited_model import facts_of, limited
from intercode.models.prices import Price, find_price
from intercode.models.providers.openai import OpenAIModel
from intercode.models.providers.scripted import ScriptedModel, read_script
from intercode.models.redaction import hide
from intercode.models.resolve import PROVIDERS, open_model
from intercode.models.token_count import count_tokens
from intercode.models.transport.concurrency import Traffic

__all__ = [
    "PROVIDERS", "Budget", "Call", "Completion", "Limits", "Message", "Model", "OpenAIModel",
    "Price", "ScriptedModel", "Tool", "Traffic", "count_tokens", "facts_of", "find_price", "hide",
    "limited", "open_model", "read_script",
]  # fmt: skip
