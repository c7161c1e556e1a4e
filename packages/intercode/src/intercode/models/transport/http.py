"""POST requests to model endpoints, with limits on time and size."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from yarl import URL

from intercode.core.errors import ConfigError
from intercode.models.redaction import is_secret_header
from intercode.models.transport.retry import AttemptError
from intercode_sandbox.http import describe_error, find_proxy, open_session, ssl_context

MAX_RESPONSE_BYTES = 64 << 20
"""The size of the largest response that is read."""
MAX_REDIRECTS = 3
EVENT_STREAM = "text/event-stream"


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An HTTP response. The names of the headers are case-insensitive."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    content_type: str = ""


class HttpConnections:
    """Reusable connections to one endpoint, on the event loop that creates the pool.

    ``headers`` are sent with every request. If the environment names a proxy for the endpoint, all
    requests use it.
    """

    def __init__(self, url: URL, headers: Mapping[str, str]) -> None:
        self._url, self._proxy = url, find_proxy(url)
        self._verify: ssl.SSLContext | bool = ssl_context() if url.scheme == "https" else True
        self._session = open_session(headers)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def post(
        self, data: bytes, seconds: float, silence: float | None = None, *, path: str | None = None
    ) -> HttpResponse:
        """Send ``data`` in a POST request and read the whole response within ``seconds``.

        ``path`` is another path of the same host, in place of the endpoint's.

        ``silence`` bounds the seconds until a stream of events begins and between its parts; any
        other response has to be complete by then.

        A redirect that keeps the method (307, 308) is followed on the same host only, so that no
        key is sent elsewhere. Raises AttemptError if no readable response arrived; its
        ``response_lost`` is false only if no connection was made.
        """
        import aiohttp

        sent = False

        async def body() -> AsyncIterator[bytes]:
            nonlocal sent
            sent = True
            yield data

        try:
            async with asyncio.timeout(seconds), asyncio.timeout(silence) as waiting:
                url = self._url if path is None else self._url.with_path(path)
                for _ in range(MAX_REDIRECTS):
                    answer = await self._send(url, body(), len(data), waiting, silence)
                    target = _same_origin_redirect(url, answer)
                    if target is None:
                        break
                    url = target
                return answer
        except TimeoutError as e:
            limit = seconds if silence is None else min(seconds, silence)
            what = f"no complete answer within {limit:.1f} s"
            raise AttemptError(what, timed_out=True, response_lost=sent) from e
        except (aiohttp.ClientError, OSError) as e:
            raise AttemptError(str(describe_error(e)), response_lost=sent) from None

    async def _send(
        self,
        url: URL,
        body: AsyncIterator[bytes],
        length: int,
        waiting: asyncio.Timeout,
        silence: float | None,
    ) -> HttpResponse:
        clock = asyncio.get_running_loop().time
        async with self._session.post(
            url,
            data=body,
            headers={"Content-Length": str(length)},
            ssl=self._verify,
            proxy=self._proxy,
            allow_redirects=False,
        ) as response:
            parts, size = [], 0
            is_stream = response.content_type == EVENT_STREAM
            async for part in response.content.iter_any():
                if is_stream and silence is not None:
                    waiting.reschedule(clock() + silence)
                parts.append(part)
                size += len(part)
                if size > MAX_RESPONSE_BYTES:
                    raise AttemptError(
                        f"the response exceeds {MAX_RESPONSE_BYTES >> 20} MiB", response_lost=True
                    )
            whole = b"".join(parts)
            return HttpResponse(response.status, response.headers, whole, response.content_type)


def _same_origin_redirect(url: URL, answer: HttpResponse) -> URL | None:
    """Return where a redirect leads if it may be followed, else None."""
    if answer.status not in (307, 308) or "Location" not in answer.headers:
        return None
    try:
        target = url.join(URL(answer.headers["Location"]))
        return target if target.origin() == url.origin() else None
    except ValueError:
        return None


def parse_base_url(base_url: str, path: str) -> tuple[URL, tuple[str, str] | None]:
    """Return the URL of ``path`` under a base URL, and the user name and password in it.

    Raises ConfigError for an invalid URL, and for a key in its query, which would be written to
    logs.
    """
    try:
        base = URL(base_url)
    except (ValueError, TypeError) as e:
        raise ConfigError(f"the base URL is invalid: {e}") from e
    if base.scheme not in ("http", "https") or not base.host:
        raise ConfigError(
            f"the base URL {base_url.rpartition('@')[2]!r} is not an http(s) address; write it "
            "like http://HOST:PORT/v1"
        )
    stem = base.raw_path.rstrip("/").removesuffix(path)
    url = base.with_user(None).with_path(stem + path, encoded=True, keep_query=True)
    has_user = base.user is not None or base.password is not None
    user = (base.user or "", base.password or "") if has_user else None
    if any(is_secret_header(name) for name in url.query):
        raise ConfigError(
            f"the base URL of {url.host} has a key in its query, which would appear in logs: "
            "give it as a header (the option headers) or as api_key"
        )
    return url, user


def recorded_address(url: URL) -> str:
    """Return an address as it is recorded: a digest stands for its query, which may choose the
    model."""
    if not url.query_string:
        return str(url)
    digest = hashlib.sha256(url.raw_query_string.encode()).hexdigest()[:12]
    return str(url.with_query(None).with_fragment(f"query-{digest}"))


def validate_key(key: str | None) -> str | None:
    """Return an API key that a header may hold, or None for an empty one. Raises ConfigError that
    does not show the key."""
    key = (key or "").strip() or None
    if key is not None and not (key.isascii() and key.isprintable()):
        raise ConfigError(
            "the API key has characters that HTTP headers cannot contain; set it again"
        )
    return key
