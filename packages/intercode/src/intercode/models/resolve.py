"""Resolves model names such as ``provider/model`` to endpoints and API keys."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from intercode.core.errors import ConfigError
from intercode.models.base import Model
from intercode.models.endpoint import Endpoint
from intercode.models.options import split_options
from intercode.models.providers.function import as_model
from intercode.models.providers.openai import OPENAI_OPTIONS, OpenAIModel
from intercode.models.providers.scripted import read_script
from intercode_sandbox.registry import Registry, is_file_reference, load_object


@dataclass(frozen=True, slots=True)
class Provider:
    """An OpenAI-compatible endpoint. ``key_variable`` is the environment variable with its API key,
    or "" if none is needed."""

    base_url: str
    key_variable: str = ""


OWN_KEY_VARIABLE = "INTERCODE_API_KEY"
"""The environment variable with a key for any endpoint. That of a provider is read after it."""

PROVIDERS = {
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "together": Provider("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "groq": Provider("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "deepseek": Provider("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "mistral": Provider("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "fireworks": Provider("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "xai": Provider("https://api.x.ai/v1", "XAI_API_KEY"),
    "cerebras": Provider("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "huggingface": Provider("https://router.huggingface.co/v1", "HF_TOKEN"),
    "vllm": Provider("http://localhost:8000/v1"),
    "sglang": Provider("http://localhost:30000/v1"),
    "ollama": Provider("http://localhost:11434/v1"),
    "llamacpp": Provider("http://localhost:8080/v1"),
}
"""Providers that speak OpenAI's protocol. Those without a key variable run on the local machine."""

NATIVE_PROVIDERS = Registry(
    "provider",
    {
        "anthropic": "intercode.models.providers.anthropic:AnthropicModel",
        "google": "intercode.models.providers.google:GoogleModel",
        "litellm": "intercode.models.providers.litellm:LiteLLMModel",
    },
)
"""Providers with a client library of their own: extras of the same names."""

_NATIVE_OPTIONS = ("thinking", "prompt_cache")
"""The options that only models of these have."""

KEY_VARIABLES = {"anthropic": "ANTHROPIC_API_KEY", "google": "GEMINI_API_KEY", "litellm": ""}
"""The environment variables with their keys. LiteLLM reads its providers' own variables."""


def open_model(
    name: str, base_url: str | None = None, *, needs_key: bool = True, **options: Any
) -> Model:
    """Return the model of that name.

    ``scripted:FILE`` answers from a JSON list, ``FILE.py:NAME`` is a function of messages or a
    Model in that file (see FunctionModel). ``anthropic/NAME``, ``google/NAME`` and
    ``litellm/PROVIDER/NAME`` use the client libraries of the extras of these names, with
    ``base_url`` if one is given. Any other name is requested from ``base_url``, or from
    OPENAI_BASE_URL; without these, ``PROVIDER/NAME`` takes the address from PROVIDERS. The key
    comes from ``api_key``, INTERCODE_API_KEY, or the provider's variable (OPENAI_API_KEY with a
    base URL). Without ``needs_key``, a missing key is no error until the model is asked. For
    ``options`` see docs/models.md. Raises ConfigError that says what to set, and UnknownNameError
    for an unknown option.
    """
    kind, _, rest = name.partition(":")
    if kind == "scripted":
        if not rest:
            raise ConfigError("scripted: needs a file, as in scripted:replies.json")
        check_option_names(options)
        return read_script(Path(rest))
    if not name:
        raise ConfigError("the model's name is empty; give one with --model PROVIDER/NAME")
    if is_file_reference(name):
        if base_url or options:
            unused = ", ".join(["base_url"] * bool(base_url) + sorted(options))
            raise ConfigError(f"the model {name} is a function, without {unused}: leave it out")
        return as_model(load_object(name))
    options = {k: v for k, v in options.items() if v is not None}
    provider, _, short = name.partition("/")
    given_as_option = bool(options.get("api_key"))
    given = options.pop("api_key", None) or os.environ.get(OWN_KEY_VARIABLE)
    if provider in NATIVE_PROVIDERS and short:
        native = _open_native(provider, short, base_url, given, needs_key, options)
        return _with_key_source(native, given_as_option, KEY_VARIABLES[provider])
    base_url = base_url or os.environ.get("OPENAI_BASE_URL")
    split_options(options, OPENAI_OPTIONS)
    if base_url:
        key = given or os.environ.get("OPENAI_API_KEY")
        known_provider = _provider_of_url(base_url)
        model = OpenAIModel(name, base_url, api_key=key, provider=known_provider, **options)
        return _with_key_source(model, given_as_option, "OPENAI_API_KEY")
    if provider not in PROVIDERS or not short:
        raise ConfigError(_unknown_endpoint_message(name))
    endpoint = PROVIDERS[provider]
    key = given or (os.environ.get(endpoint.key_variable) if endpoint.key_variable else None)
    if endpoint.key_variable and not key and needs_key:
        raise ConfigError(
            f"no key for {endpoint.base_url}: set {endpoint.key_variable} or INTERCODE_API_KEY"
        )
    options.setdefault("stream", bool(endpoint.key_variable))
    model = OpenAIModel(short, endpoint.base_url, api_key=key, provider=provider, **options)
    return _with_key_source(model, given_as_option, endpoint.key_variable)


def check_option_names(options: Mapping[str, Any]) -> None:
    """Raise UnknownNameError for an option that no model has."""
    own = (*OPENAI_OPTIONS, *_NATIVE_OPTIONS, "api_key")
    split_options({k: v for k, v in options.items() if k not in own}, own)


def _open_native(
    provider: str,
    name: str,
    base_url: str | None,
    key: str | None,
    needs_key: bool,
    options: dict[str, Any],
) -> Model:
    variable = KEY_VARIABLES[provider]
    key = key or (os.environ.get(variable) if variable else None)
    if variable and not key and needs_key:
        raise ConfigError(f"no key for {provider}/{name}: set {variable} or INTERCODE_API_KEY")
    model: Model = NATIVE_PROVIDERS.load(provider)(name, base_url, api_key=key, **options)
    return model


def _with_key_source(model: Model, given_as_option: bool, variable: str) -> Model:
    """Return a model after noting where its key comes from, or could be set."""
    if isinstance(model, Endpoint):
        if given_as_option:
            model.key_source = "the key in the option api_key"
        elif os.environ.get(OWN_KEY_VARIABLE):
            model.key_source = f"the key in {OWN_KEY_VARIABLE}"
        elif variable and os.environ.get(variable):
            model.key_source = f"the key in {variable}"
        else:
            names = " or ".join(filter(None, (variable, OWN_KEY_VARIABLE)))
            model.key_source = f"the key: none was sent, set {names}"
    return model


def _provider_of_url(base_url: str) -> str:
    """Return the provider with this address, whose prices apply; "" if there is none."""
    host = urlsplit(base_url).hostname
    matches = [
        n for n, p in PROVIDERS.items() if p.key_variable and urlsplit(p.base_url).hostname == host
    ]
    return matches[0] if matches else ""


def _unknown_endpoint_message(name: str) -> str:
    known = ", ".join(f"{p}/NAME" for p in (*PROVIDERS, *NATIVE_PROVIDERS))
    return (
        f"no endpoint is known for the model {name!r}: give --base-url URL (an OpenAI-compatible "
        f"address such as http://localhost:8000/v1), set OPENAI_BASE_URL, or use {known}"
    )
