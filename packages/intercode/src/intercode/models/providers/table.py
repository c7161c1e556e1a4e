"""The table of providers: where ``PROVIDER/NAME`` is requested, by which class, and with which key.

Other packages add rows by the entry points ``intercode.providers``; see
docs/guides/add-a-provider.md.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from intercode.core.errors import ConfigError
from intercode_sandbox.registry import Registry, load_object

LOCAL = "local"
"""The provider of models on this machine, whose names are ``local`` and ``local:FILE``."""
OPENAI_MODEL = "intercode.models.providers.openai:OpenAIModel"


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider of models.

    ``base_url``: the address of its endpoint; empty if ``model`` knows it. ``key_variable``: the
    environment variable with its API key; empty if none is needed. ``model``: the class of its
    models, or ``package.module:Class``, called as ``(name, base_url, api_key=KEY, **options)``;
    without one it speaks OpenAI's protocol. ``api``: which of OpenAI's APIs it documents as its
    main one. ``telemetry``: its name in the conventions of OpenTelemetry, if they have one.
    """

    base_url: str = ""
    key_variable: str = ""
    model: str | type = OPENAI_MODEL
    api: str = "chat"
    telemetry: str = ""

    @property
    def is_compatible(self) -> bool:
        """Whether it speaks OpenAI's protocol, so that any other address may take its place."""
        return self.model == OPENAI_MODEL

    @property
    def model_class(self) -> Any:
        """The class of its models."""
        return load_object(self.model) if isinstance(self.model, str) else self.model

    @property
    def options(self) -> tuple[str, ...]:
        """The options that its models have beyond those of options.py."""
        parameters = inspect.signature(self.model_class).parameters.values()
        return tuple(
            p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "provider"
        )


PROVIDERS = {
    "openai": Provider(
        "https://api.openai.com/v1", "OPENAI_API_KEY", api="responses", telemetry="openai"
    ),
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "together": Provider("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "groq": Provider("https://api.groq.com/openai/v1", "GROQ_API_KEY", telemetry="groq"),
    "deepseek": Provider("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", telemetry="deepseek"),
    "mistral": Provider("https://api.mistral.ai/v1", "MISTRAL_API_KEY", telemetry="mistral_ai"),
    "fireworks": Provider("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "xai": Provider("https://api.x.ai/v1", "XAI_API_KEY", api="responses", telemetry="x_ai"),
    "cerebras": Provider("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "huggingface": Provider("https://router.huggingface.co/v1", "HF_TOKEN"),
    "vllm": Provider("http://localhost:8000/v1"),
    "sglang": Provider("http://localhost:30000/v1"),
    "ollama": Provider("http://localhost:11434/v1"),
    "llamacpp": Provider("http://localhost:8080/v1"),
    "anthropic": Provider(
        key_variable="ANTHROPIC_API_KEY",
        telemetry="anthropic",
        model="intercode.models.providers.anthropic:AnthropicModel",
    ),
    "google": Provider(
        key_variable="GEMINI_API_KEY",
        telemetry="gcp.gemini",
        model="intercode.models.providers.google:GoogleModel",
    ),
    "litellm": Provider(model="intercode.models.providers.litellm:LiteLLMModel"),
    LOCAL: Provider(model="intercode.models.providers.local:LocalModel"),
}
"""The providers of this package, by name. Those with a class of their own need the extra of that
name, with the client library; LiteLLM reads its providers' own variables."""

_PLUGINS = Registry("provider", {}, group="intercode.providers")


def provider_names() -> Iterator[str]:
    """Yield the names of all providers, those of other packages last."""
    yield from PROVIDERS
    yield from (name for name in _PLUGINS if name not in PROVIDERS)


def find_provider(name: str) -> Provider | None:
    """Return the provider of that name, or None. Raises ConfigError for an entry point that names
    something else."""
    if name in PROVIDERS or name not in _PLUGINS:
        return PROVIDERS.get(name)
    provider = _PLUGINS.load(name)
    if not isinstance(provider, Provider):
        raise ConfigError(
            f"the provider {name!r} of {_PLUGINS.origin(name)} is {provider!r:.100}: let its entry "
            "point name a Provider of intercode.models"
        )
    return provider
