"""Shared parts of the providers that use their own client library."""

from __future__ import annotations

import asyncio
import importlib
import json
import math
import os
from abc import abstractmethod
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn, TypeVar

from intercode.core.errors import ConfigError
from intercode.models.base import Completion, Message, ToolCall
from intercode.models.endpoint import Endpoint, lower_max_tokens
from intercode.models.options import check_stream, describe_refused_options, split_options
from intercode.models.transport.http import parse_base_url, recorded_address, validate_key
from intercode.models.transport.retry import (
    OVERLOAD_STATUSES,
    AttemptError,
    is_transient,
    parse_retry_after,
)

T = TypeVar("T")
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


class LibraryModel(Endpoint):
    """A model that is called through a client library of the extra ``models``.

    ``provider`` is whose prices apply. Without a base URL, the first of ``address_variables`` that
    the environment sets is the address, as for the library itself, or else ``default_address``
    stands for it. ``stream``: answers are sent in parts, so that ``timeout`` bounds the silence
    between these and not the whole answer (the default). Raises ConfigError without the library,
    and says how to install it. A subclass implements ``send``.
    """

    library_name: ClassVar[str]
    prefix: ClassVar[str]

    def __init__(
        self,
        name: str,
        base_url: str | None,
        api_key: str | None,
        options: Mapping[str, Any],
        *,
        provider: str,
        default_address: str,
        address_variables: Sequence[str],
    ) -> None:
        try:
            self._library: Any = importlib.import_module(self.library_name)
        except ImportError as e:
            raise ConfigError(
                f"models of {self.prefix}/ need the client library {self.library_name}: "
                f"pip install 'intercode-gym[models]' ({e})"
            ) from e
        generation, conduct, own = split_options(options, ("stream",))
        self.stream = check_stream(own.get("stream"), default=True)
        base_url = base_url or next(filter(None, map(os.environ.get, address_variables)), None)
        self._key, self._base_url = validate_key(api_key), base_url
        address, user = default_address, None
        if base_url is not None:
            url, user = parse_base_url(base_url, "")
            address = recorded_address(url)
        secrets = [s for s in (self._key, user[1] if user else None) if s]
        super().__init__(name, address, generation, conduct, provider=provider, secrets=secrets)

    @property
    def attempt_timeout(self) -> float:
        """See Endpoint: a stream may go on as long as the patience of the call."""
        return math.inf if self.stream else super().attempt_timeout

    def limit_answer(self, request: dict[str, Any], max_tokens: int) -> dict[str, Any]:
        return lower_max_tokens(request, max_tokens)

    @abstractmethod
    async def send(self, client: Any, request: dict[str, Any], seconds: float) -> Completion:
        """Send the request by the library. May raise the library's errors."""

    async def attempt(self, client: Any, request: dict[str, Any], seconds: float) -> Completion:
        try:
            async with asyncio.timeout(seconds):
                return await self.send(client, request, seconds)
        except AttemptError:
            raise
        except Exception as e:  # raise_for_error classifies the library's errors
            raise_for_error(self, e)

    async def without_silence(self, event: Awaitable[T]) -> T:
        """Return what comes next of a streamed answer. Raises TimeoutError at the time limit."""
        async with asyncio.timeout(self.request_options.timeout):
            return await event

    async def collect(self, stream: AsyncIterable[T]) -> list[T]:
        """Return all parts of a streamed answer. Raises TimeoutError if one does not come."""
        iterator, parts = aiter(stream), list[T]()
        while True:
            try:
                parts.append(await self.without_silence(anext(iterator)))
            except StopAsyncIteration:
                return parts


def alternating_turns(
    messages: Sequence[Message],
    roles: tuple[str, str],
    field: str,
    provider: str,
    convert: Callable[[Message], list[dict[str, Any]]],
) -> list[dict[str, Any]]:
    """Return messages for a protocol in which roles alternate: neighbouring messages of one role
    are joined, and system messages are left out.

    ``roles`` are the names of the assistant and of all others. ``convert`` returns the parts of a
    message, which are put under ``field``; those that ``provider`` has sent itself go back as they
    were.
    """
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "system":
            continue
        role = roles[message["role"] != "assistant"]
        parts = convert(message)
        sent = message.get("provider")
        if isinstance(sent, Mapping) and sent.get(provider):
            parts = list(sent[provider])
        if turns and turns[-1]["role"] == role:
            turns[-1][field] += parts
        else:
            turns.append({"role": role, field: parts})
    return turns


def system_text(messages: Sequence[Message]) -> str | None:
    """Return the text of all system messages; None if there is none."""
    return "\n\n".join(m["content"] for m in messages if m["role"] == "system") or None


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
            remedy = describe_refused_options(message, model.generation)
            raise model.refusal(message + remedy, status) from None
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        wait = parse_retry_after(headers.get("retry-after"))
        raise AttemptError(message, wait, overloaded=status in OVERLOAD_STATUSES) from None
    if isinstance(status, int) and status == 200:  # the answer began, and reports an error
        raise AttemptError(text, overloaded="overloaded" in text, response_lost=True) from None
    if any(_is_network_error(kind) for kind in type(error).__mro__) or isinstance(error, OSError):
        timed_out = "Timeout" in type(error).__name__ or isinstance(error, TimeoutError)
        refused = "connect" in type(error).__name__.lower() and not timed_out
        raise AttemptError(text, timed_out=timed_out, response_lost=not refused) from None
    raise error


def _is_network_error(kind: type) -> bool:
    return kind.__module__.split(".")[0] in NETWORK_PACKAGES or kind.__name__ in (
        "APIConnectionError",
        "APIResponseValidationError",
        "UnknownApiResponseError",
    )


def parse_arguments(call: ToolCall) -> dict[str, Any]:
    """Return a call's arguments as an object; text that is no JSON object under ``arguments``."""
    text = call["function"]["arguments"]
    try:
        value = json.loads(text or "{}")
    except ValueError:
        value = text
    return value if isinstance(value, dict) else {"arguments": value}
