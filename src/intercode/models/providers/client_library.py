"""Shared parts of the providers that use their own client library."""

from __future__ import annotations

import importlib
import json
from typing import Any, NoReturn

from intercode.core.errors import ConfigError
from intercode.models.base import ToolCall
from intercode.models.endpoint import Endpoint
from intercode.models.transport.http import parse_base_url
from intercode.models.transport.retry import (
    OVERLOAD_STATUSES,
    AttemptError,
    is_transient,
    parse_retry_after,
)

NETWORK_PACKAGES = (
    "httpx",
    "httpx2",
    "httpcore",
    "httpcore2",
    "h11",
    "aiohttp",
    "anyio",
    "ssl",
    "json",
    "pydantic_core",
)
"""Packages whose errors mean that the network failed or that the response was invalid."""


def load_library(module: str, extra: str) -> Any:
    """Return a client library. Raises ConfigError that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as e:
        raise ConfigError(
            f"models of {extra}/ need the client library {module}: "
            f"pip install 'intercode-gym[{extra}]' ({e})"
        ) from e


def describe_address(base_url: str | None, default: str) -> tuple[str, list[str]]:
    """Return a base URL without the password in it, and the password as a list of secrets. Raises
    ConfigError."""
    if base_url is None:
        return default, []
    url, user = parse_base_url(base_url, "")
    return str(url), [user[1]] if user else []


def raise_for_error(model: Endpoint, error: Exception) -> NoReturn:
    """Raise AttemptError or ModelRefusedError for an error of a client library, or the error itself
    if it does not come from the endpoint.

    The server's text is redacted, and the library's own error, which holds it, is left out of the
    exception chain.
    """
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    text = model.redact(f"{type(error).__name__}: {error}")[:500]
    if isinstance(status, int) and status >= 300:
        message = f"HTTP {status}: {text}"
        if not is_transient(status):
            hint = "; the option temperature=none leaves it out" * ("temperature" in message)
            raise model.refusal(message + hint, status) from None
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        wait = parse_retry_after(headers.get("retry-after"))
        raise AttemptError(message, wait, overloaded=status in OVERLOAD_STATUSES) from None
    if any(_is_network_error(kind) for kind in type(error).__mro__) or isinstance(error, OSError):
        timed_out = "Timeout" in type(error).__name__ or isinstance(error, TimeoutError)
        refused = "connect" in type(error).__name__.lower() and not timed_out
        raise AttemptError(text, overloaded=timed_out, response_lost=not refused) from None
    raise error


def _is_network_error(kind: type) -> bool:
    return kind.__module__.split(".")[0] in NETWORK_PACKAGES or kind.__name__ in (
        "APIConnectionError", "APIResponseValidationError", "UnknownApiResponseError",
    )  # fmt: skip


def parse_arguments(call: ToolCall) -> dict[str, Any]:
    """Return a call's arguments as an object; text that is no JSON object under ``arguments``."""
    text = call["function"]["arguments"]
    try:
        value = json.loads(text or "{}")
    except ValueError:
        value = text
    return value if isinstance(value, dict) else {"arguments": value}
