"""Any endpoint that speaks OpenAI's chat-completions protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import httpx

from intercode.errors import ConfigError, ModelRefusedError, ModelUnavailableError
from intercode.models.answers import UnusableAnswerError, read_answer, read_error
from intercode.models.base import Completion, Message, Tool
from intercode.models.retry import Retry, is_transient, parse_retry_after
from intercode.types import NOTHING

PATH = "/chat/completions"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class _AttemptError(Exception):
    """One attempt that may go well the next time. ``wait``: seconds that the server asked for."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class OpenAIModel:
    """A model behind a chat-completions endpoint; one instance serves many threads.

    ``base_url`` ends before ``/chat/completions``. ``temperature`` None leaves the field out, as
    some reasoning models want. ``timeout`` bounds one attempt, in seconds. ``extra`` is merged
    into the request; a None in it removes a field. ``retry`` tunes the waiting and overrides
    ``max_attempts``. The key is in no message and no repr.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        api_key: str | None = None,
        temperature: float | None = 0.0,
        max_tokens: int | None = None,
        timeout: float = 120.0,
        max_attempts: int = 6,
        extra: Mapping[str, Any] = NOTHING,
        retry: Retry | None = None,
    ) -> None:
        self.name = name
        self.retry = retry or Retry(max_attempts=max_attempts)
        if self.retry.max_attempts < 1 or timeout <= 0:
            raise ConfigError("max_attempts must be at least 1 and timeout greater than 0 seconds")
        url = _checked(base_url)
        self.endpoint = str(url.copy_with(userinfo=b""))
        self._timeout = timeout
        self._key = _checked_key(api_key)
        fields = {"model": name, "temperature": temperature, "max_tokens": max_tokens, **extra}
        self._fields = {k: v for k, v in fields.items() if v is not None}
        headers = {"Content-Type": "application/json", "User-Agent": "intercode"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        self._client = httpx.Client(
            headers=headers,
            timeout=timeout,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
            trust_env=url.host not in LOOPBACK,  # a proxy cannot reach this machine's own ports
        )
        self._url = url

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, {self.endpoint!r})"

    def complete(self, messages: Sequence[Message], *, tools: Sequence[Tool] = ()) -> Completion:  # noqa: ARG002
        """Continue the conversation; see Model."""
        retry = self.retry
        give_up = retry.clock() + retry.patience
        body = {**self._fields, "messages": list(messages)}
        for attempt in range(1, retry.max_attempts + 1):
            try:
                return self._attempt(body, attempt, give_up)
            except _AttemptError as e:
                wait = retry.wait_for(attempt, e.wait)
                if attempt == retry.max_attempts:
                    raise self._unavailable(f"{attempt} attempts failed, the last: {e}") from e
                if retry.clock() + wait >= give_up:
                    why = f"{e}; the next attempt would be {wait:.0f} s away, past the patience"
                    raise self._unavailable(f"{why} of {retry.patience:.0f} s") from e
            retry.sleep(wait)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def close(self) -> None:
        """Close the connections. May be called again."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _attempt(self, body: Mapping[str, Any], attempt: int, give_up: float) -> Completion:
        try:
            status, headers, content = self._post(body, give_up)
        except httpx.RequestError as e:
            raise _AttemptError(self._clean(f"{type(e).__name__}: {e}")) from e
        if status >= 300:
            message, code = read_error(content)
            message = self._clean(f"HTTP {status}: {message}")
            if is_transient(status) and code != "insufficient_quota":
                raise _AttemptError(message, parse_retry_after(headers.get("Retry-After")))
            raise self._refused(message)
        try:
            return read_answer(content, requests=attempt)
        except UnusableAnswerError as e:
            unusable = e
        # outside the block, so that what the server wrote is not in the chain of causes unclean
        message = self._clean(str(unusable))
        if unusable.status is not None and not is_transient(unusable.status):
            raise self._refused(message)
        raise _AttemptError(message)

    def _post(self, body: Mapping[str, Any], give_up: float) -> tuple[int, httpx.Headers, bytes]:
        """Send and read everything; an answer that trickles in for ever times out as well."""
        clock = self.retry.clock
        deadline = min(clock() + self._timeout, give_up)
        left = max(deadline - clock(), 0.001)
        data = json.dumps(body).encode("ascii")  # escapes what is no valid Unicode
        with self._client.stream("POST", self._url, content=data, timeout=left) as response:
            parts = []
            for part in response.iter_bytes():
                parts.append(part)
                if clock() > deadline:
                    raise httpx.ReadTimeout(f"no complete answer within {left:.0f} s")
            return response.status_code, response.headers, b"".join(parts)

    def _clean(self, message: str) -> str:
        """The message without the key; one of few characters is a placeholder such as EMPTY."""
        secret = self._key is not None and len(self._key) >= 8
        return message.replace(self._key or "", "[key]") if secret else message

    def _unavailable(self, what: str) -> ModelUnavailableError:
        return ModelUnavailableError(f"no answer from {self.name!r} at {self.endpoint}: {what}")

    def _refused(self, what: str) -> ModelRefusedError:
        return ModelRefusedError(f"{self.name!r} at {self.endpoint} refused: {what}")


def _checked(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url.rstrip("/").removesuffix(PATH) + PATH)
    except (httpx.InvalidURL, TypeError) as e:
        raise ConfigError(f"the base URL cannot be read: {e}") from e
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigError(
            f"the base URL {base_url.rpartition('@')[2]!r} is no http(s) address; write it like http://HOST:PORT/v1"
        )
    return url


def _checked_key(key: str | None) -> str | None:
    key = (key or "").strip() or None
    if key is not None and not (key.isascii() and key.isprintable()):
        raise ConfigError("the API key holds characters that no HTTP header may hold; set it anew")
    return key
