"""Language models: any OpenAI-compatible endpoint, native clients through extras, or a script; with
limits, prices and a cache."""

from __future__ import annotations

from intercode.models.base import Call, Completion, Message, Model, Tool
from intercode.models.budget import Budget, Limits
from intercode.models.counting import count_tokens
from intercode.models.limited import facts_of, limited
from intercode.models.openai import OpenAIModel
from intercode.models.pace import Traffic
from intercode.models.prices import Price, find_price
from intercode.models.providers import PROVIDERS, open_model
from intercode.models.scripted import ScriptedModel, read_script
from intercode.models.secrecy import hide

__all__ = [
    "PROVIDERS", "Budget", "Call", "Completion", "Limits", "Message", "Model", "OpenAIModel",
    "Price", "ScriptedModel", "Tool", "Traffic", "count_tokens", "facts_of", "find_price", "hide",
    "limited", "open_model", "read_script",
]  # fmt: skip
