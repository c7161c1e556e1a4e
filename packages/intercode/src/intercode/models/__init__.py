"""Language models: OpenAI-compatible endpoints, providers with a client library of their own, and
scripted models; with spending limits, prices and a cache of completions."""

from __future__ import annotations

from intercode.models.base import Completion, Message, Model, Tool, ToolCall
from intercode.models.budget import Budget, SpendingLimits
from intercode.models.limited_model import limit_model
from intercode.models.prices import Price
from intercode.models.providers.function import FunctionModel
from intercode.models.providers.openai import OpenAIModel
from intercode.models.providers.scripted import ScriptedModel
from intercode.models.providers.table import Provider
from intercode.models.resolve import check_option_names, open_model
from intercode.models.token_count import count_tokens
from intercode.models.tokens import read_tokens
from intercode.models.transport.concurrency import Traffic

__all__ = [
    "Budget",
    "Completion",
    "FunctionModel",
    "Message",
    "Model",
    "OpenAIModel",
    "Price",
    "Provider",
    "ScriptedModel",
    "SpendingLimits",
    "Tool",
    "ToolCall",
    "Traffic",
    "check_option_names",
    "count_tokens",
    "limit_model",
    "open_model",
    "read_tokens",
]
