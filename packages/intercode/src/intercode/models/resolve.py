"""Resolves model names such as ``provider/model`` to endpoints and API keys."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from intercode.core.errors import ConfigError
from intercode.models.base import Model
from intercode.models.endpoint import Endpoint
from intercode.models.options import OPTION_NAMES, split_options
from intercode.models.providers.function import as_model
from intercode.models.providers.scripted import read_script
from intercode.models.providers.table import (
    LOCAL,
    PROVIDERS,
    Provider,
    find_provider,
    provider_names,
)
from intercode_sandbox.registry import is_file_reference, load_object

OWN_KEY_VARIABLE = "INTERCODE_API_KEY"
"""The environment variable with a key for any endpoint. That of a provider is read after it."""


def open_model(
    name: str, base_url: str | None = None, *, needs_key: bool = True, **options: Any
) -> Model:
    """Return the model of that name.

    ``scripted:FILE`` answers from a JSON list, ``FILE.py:NAME`` is a function of messages or a
    Model in that file (see FunctionModel). ``local`` and ``local:FILE`` are models on this machine
    (see LocalModel), unless there is a base URL. ``PROVIDER/NAME`` is a model of that provider,
    whose protocol, address and variable of the key are in the table of providers; one with a
    protocol of its own is given ``base_url``. Any other name is requested from ``base_url``, or
    from OPENAI_BASE_URL, in OpenAI's protocol. The key comes from ``api_key``, INTERCODE_API_KEY,
    or the provider's variable (OPENAI_API_KEY with a base URL). Without ``needs_key``, a missing
    key is no error until the model is asked. For ``options`` see docs/models.md. Raises ConfigError
    that says what to set, and UnknownNameError for an unknown option.
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
    given_as_option = bool(options.get("api_key"))
    key = options.pop("api_key", None) or os.environ.get(OWN_KEY_VARIABLE)
    prefix, _, short = name.partition("/")
    provider = find_provider(prefix) if short else None
    if kind == LOCAL and base_url is None:
        short, provider = rest, find_provider(LOCAL)
    if provider is None or provider.is_compatible:
        split_options(options, Provider().options)
        if base_url := base_url or os.environ.get("OPENAI_BASE_URL"):
            prefix, short, needs_key = _provider_of_url(base_url), name, False
            provider = Provider(base_url, "OPENAI_API_KEY")
            options = {"stream": bool(prefix), **options}
        if provider is None:
            raise ConfigError(_unknown_endpoint_message(name))
        options = {"provider": prefix, "stream": bool(provider.key_variable), **options}
    key = key or os.environ.get(provider.key_variable or OWN_KEY_VARIABLE)
    if provider.key_variable and not key and needs_key:
        where = provider.base_url or name
        raise ConfigError(f"no key for {where}: set {provider.key_variable} or {OWN_KEY_VARIABLE}")
    address = base_url or provider.base_url or None
    model: Model = provider.model_class(short, address, api_key=key, **options)
    return _with_key_source(model, given_as_option, provider.key_variable)


def check_option_names(options: Mapping[str, Any]) -> None:
    """Raise UnknownNameError for an option that no model has.

    >>> from intercode.models import check_option_names
    >>> check_option_names({"temperatures": 0})
    Traceback (most recent call last):
    intercode_sandbox.errors.UnknownNameError: unknown model option 'temperatures'; did you mean ...
    """
    needed = not options.keys() <= {"api_key", *chain(*OPTION_NAMES)}  # their classes take time
    providers = filter(None, map(find_provider, provider_names() if needed else ()))
    own = dict.fromkeys(["api_key", *(name for p in providers for name in p.options)])
    split_options({k: v for k, v in options.items() if k not in own}, list(own))


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
        n
        for n, p in PROVIDERS.items()
        if p.key_variable and p.base_url and urlsplit(p.base_url).hostname == host
    ]
    return matches[0] if matches else ""


def _unknown_endpoint_message(name: str) -> str:
    stem, _, function = name.partition(":")
    if (file := Path(f"{stem.removesuffix('.py')}.py")).is_file():
        return f"no model {name!r}; for a function in {file}: {file}:{function or 'FUNCTION'}"
    known = ", ".join(["local", *(f"{p}/NAME" for p in provider_names() if p != LOCAL)])
    return (
        f"no endpoint is known for the model {name!r}: give --base-url URL (an OpenAI-compatible "
        f"address such as http://localhost:8000/v1), set OPENAI_BASE_URL, name a function "
        f"(FILE.py:FUNCTION), or use {known}"
    )
