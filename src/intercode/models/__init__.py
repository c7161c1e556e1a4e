"""Language models: any OpenAI-compatible endpoint, or a script."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from intercode.errors import ConfigError
from intercode.models.base import Call, Completion, Message, Model, Tool
from intercode.models.openai import OpenAIModel
from intercode.models.scripted import ScriptedModel, read_script

__all__ = [
    "Call", "Completion", "Message", "Model", "OpenAIModel", "ScriptedModel", "Tool", "open_model",
]  # fmt: skip

PROVIDERS = {
    "openai": ("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "openrouter": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
}
"""Name prefixes: where they point and which variable holds their key."""


def open_model(name: str, base_url: str | None = None, **options: Any) -> Model:
    """The model of that name.

    ``scripted:FILE`` answers from a JSON list. With ``base_url``, or OPENAI_BASE_URL in the
    environment, the name goes to that endpoint as it is. Else ``PROVIDER/NAME`` takes the address
    from PROVIDERS. The key comes from ``api_key``, INTERCODE_API_KEY, or the provider's variable
    (OPENAI_API_KEY with a base URL). ``options`` are OpenAIModel's. Raises ConfigError saying
    what to set.
    """
    kind, _, rest = name.partition(":")
    if kind == "scripted":
        if not rest:
            raise ConfigError("scripted: needs a file, as in scripted:replies.json")
        return read_script(Path(rest))
    if not name:
        raise ConfigError("the model's name is empty; give one with --model PROVIDER/NAME")
    variable, needs_key = "OPENAI_API_KEY", False
    if not (base_url := base_url or os.environ.get("OPENAI_BASE_URL")):
        provider, _, short = name.partition("/")
        if provider not in PROVIDERS or not short:
            raise ConfigError(_no_endpoint(name))
        base_url, variable = PROVIDERS[provider]
        name, needs_key = short, True
    key = options.pop("api_key", None) or os.environ.get("INTERCODE_API_KEY")
    key = key or os.environ.get(variable)
    if needs_key and not key:
        raise ConfigError(f"no key for {base_url}: set {variable} or INTERCODE_API_KEY")
    try:
        return OpenAIModel(name, base_url, api_key=key, **options)
    except TypeError as e:
        raise ConfigError(f"a model option is unknown or has the wrong form: {e}") from e


def _no_endpoint(name: str) -> str:
    known = ", ".join(f"{p}/NAME" for p in PROVIDERS)
    return (
        f"no endpoint is known for the model {name!r}: give --base-url URL (an OpenAI-compatible "
        f"address such as http://localhost:8000/v1), set OPENAI_BASE_URL, or use {known}"
    )
