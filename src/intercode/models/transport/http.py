"""HTTP requests with limits on time and size, over asyncio streams with h11 for the protocol.

httpx uses the same h11, but needs 2.7 ms of CPU time per request, while this module needs 0.4, and
its pool scans all connections at each request: 30 ms for 200 connections. That is too much when
hundreds of episodes send requests at once. httpx is used if there is a proxy.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self
from urllib.request import getproxies, proxy_bypass

import h11
import httpx

from intercode.core.errors import ConfigError
from intercode.models.redaction import is_secret_header
from intercode.models.transport.retry import AttemptError

READ_SIZE = 1 << 18
MAX_RESPONSE_BYTES = 64 << 20
"""The size of the largest response that is read."""


class ResponseTooLargeError(Exception):
    """A response of more than MAX_RESPONSE_BYTES."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An HTTP response. The names of the headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Connection:
    """A connection that is kept for the next request. One request uses it at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)

    @classmethod
    async def open(cls, url: httpx.URL, ssl_context: ssl.SSLContext | None) -> Self:
        """Connect to the host of a URL, with TLS if ``ssl_context`` is given. Raises OSError."""
        port = url.port or (443 if ssl_context else 80)
        reader, writer = await asyncio.open_connection(
            url.host, port, ssl=ssl_context, happy_eyeballs_delay=0.25
        )
        return cls(reader, writer)

    @property
    def usable(self) -> bool:
        """Whether another request can be sent over it."""
        closed = self._writer.is_closing() or self._reader.at_eof()
        return not closed and self._http.our_state is h11.IDLE

    async def post(
        self, url: httpx.URL, headers: Sequence[tuple[str, str]], data: bytes
    ) -> HttpResponse:
        """Send a POST request and read the whole response.

        Raises OSError, h11.RemoteProtocolError for an invalid response, and ResponseTooLargeError.
        The connection is closed after any error.
        """
        try:
            host = url.netloc.decode("ascii")
            all_headers = [("Host", host), *headers, ("Content-Length", str(len(data)))]
            start = h11.Request(method="POST", target=url.raw_path, headers=all_headers)
            events = (start, h11.Data(data=data), h11.EndOfMessage())
            self._writer.write(b"".join(self._http.send(event) or b"" for event in events))
            await self._writer.drain()
            answer = await self._read()
            if self._http.their_state is h11.DONE and self._http.our_state is h11.DONE:
                self._http.start_next_cycle()
            else:
                self.close()
            return answer
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection at once, even during a request. May be called again."""
        self._writer.transport.abort()

    async def _read(self) -> HttpResponse:
        status, headers, parts, size = 0, dict[str, str](), list[bytes](), 0
        while True:
            event: Any = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(await self._reader.read(READ_SIZE))
            elif isinstance(event, h11.Response):
                status = event.status_code
                headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in event.headers}
            elif isinstance(event, h11.Data):
                parts.append(bytes(event.data))
                size += len(event.data)
                if size > MAX_RESPONSE_BYTES:
                    raise ResponseTooLargeError(
                        f"the response exceeds {MAX_RESPONSE_BYTES >> 20} MiB"
                    )
            elif isinstance(event, h11.EndOfMessage):
                return HttpResponse(status, headers, b"".join(parts))
            elif not isinstance(event, h11.InformationalResponse):
                raise h11.RemoteProtocolError(f"the connection ended with {event!r}")


LOOPBACK = ("localhost", "127.0.0.1", "::1")
MAX_REDIRECTS = 3


class ConnectionPool:
    """Reusable connections to one host, on one event loop.

    ``headers`` are sent with every request. If a proxy applies (HTTPS_PROXY and similar variables,
    never for this machine's own ports), each connection is an httpx client.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = list(headers.items())
        self._ssl_context: ssl.SSLContext | None = None
        self._idle: list[Connection] = []
        self._clients: list[httpx.AsyncClient] = []
        self._busy: set[Connection] = set()

    async def aclose(self) -> None:
        """Close all connections."""
        for connection in (*self._idle, *self._busy):
            connection.close()
        self._idle.clear()
        clients, self._clients = self._clients, []
        for client in clients:
            await client.aclose()

    async def post(self, url: httpx.URL, data: bytes, seconds: float) -> HttpResponse:
        """Send ``data`` in a POST request and read the whole response within ``seconds``.

        A redirect that keeps the method (307, 308) is followed on the same host only, so that no
        key is sent elsewhere. Raises AttemptError if no readable response arrived; its
        ``response_lost`` is false only if no connection was made.
        """
        sent = False
        try:
            async with asyncio.timeout(seconds):
                for _ in range(MAX_REDIRECTS):
                    connection = None if uses_proxy(url) else await self._connection(url)
                    sent = True
                    answer = await self._send(connection, url, data)
                    target = _redirect_target(url, answer)
                    if target is None:
                        break
                    url = target
                return answer
        except TimeoutError as e:
            what = f"no complete answer within {seconds:.1f} s"
            raise AttemptError(what, overloaded=True, response_lost=sent) from e
        except httpx.ConnectError as e:
            raise AttemptError(f"ConnectError: {e}") from e
        except (OSError, httpx.HTTPError, httpx.StreamError) as e:
            raise AttemptError(f"{type(e).__name__}: {e}", response_lost=sent) from e
        except (h11.ProtocolError, ResponseTooLargeError) as e:
            raise AttemptError(f"the response is invalid: {e}", response_lost=True) from e

    async def _connection(self, url: httpx.URL) -> Connection:
        """Return the connection that was used last, or a new one."""
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
            connection.close()
        verified = self._get_ssl_context() if url.scheme == "https" else None
        return await Connection.open(url, verified)

    async def _send(
        self, connection: Connection | None, url: httpx.URL, data: bytes
    ) -> HttpResponse:
        if connection is None:
            return await self._send_by_proxy(url, data)
        self._busy.add(connection)
        try:
            answer = await connection.post(url, self._headers, data)
        finally:
            self._busy.discard(connection)
        if connection.usable:
            self._idle.append(connection)
        return answer

    async def _send_by_proxy(self, url: httpx.URL, data: bytes) -> HttpResponse:
        client = self._clients.pop() if self._clients else self._open_client()
        try:
            async with client.stream("POST", url, content=data) as response:
                parts, size = [], 0
                async for part in response.aiter_bytes():
                    parts.append(part)
                    size += len(part)
                    if size > MAX_RESPONSE_BYTES:
                        raise ResponseTooLargeError(
                            f"the response exceeds {MAX_RESPONSE_BYTES >> 20} MiB"
                        )
            headers = {k.lower(): v for k, v in response.headers.items()}
            return HttpResponse(response.status_code, headers, b"".join(parts))
        finally:
            self._clients.append(client)

    def _open_client(self) -> httpx.AsyncClient:
        limits = httpx.Limits(max_connections=1, max_keepalive_connections=1)
        return httpx.AsyncClient(
            headers=self._headers, verify=self._get_ssl_context(), timeout=None, limits=limits
        )

    def _get_ssl_context(self) -> ssl.SSLContext:
        if self._ssl_context is None:
            self._ssl_context = httpx.create_ssl_context()
        return self._ssl_context


def uses_proxy(url: httpx.URL) -> bool:
    """Return whether the environment names a proxy for this URL."""
    if url.host in LOOPBACK or proxy_bypass(url.host):
        return False
    proxies = getproxies()
    return bool(proxies.get(url.scheme) or proxies.get("all"))


def _redirect_target(url: httpx.URL, answer: HttpResponse) -> httpx.URL | None:
    """Return where a redirect leads if it may be followed, else None."""
    if answer.status not in (307, 308) or "location" not in answer.headers:
        return None
    try:
        target = url.join(answer.headers["location"])
    except httpx.InvalidURL:
        return None
    origin, redirected = [(u.scheme, u.host, u.port) for u in (url, target)]
    return target if origin == redirected else None


def parse_base_url(base_url: str, path: str) -> tuple[httpx.URL, tuple[str, str] | None]:
    """Return the URL of ``path`` under a base URL, and the user name and password in it.

    Raises ConfigError for an invalid URL, and for a key in its query, which would be written to
    logs.
    """
    try:
        base = httpx.URL(base_url)
        stem = base.path.rstrip("/").removesuffix(path)
        user = (base.username, base.password) if base.userinfo else None
        url = base.copy_with(userinfo=b"", path=stem + path)
    except (httpx.InvalidURL, TypeError) as e:
        raise ConfigError(f"the base URL is invalid: {e}") from e
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigError(
            f"the base URL {base_url.rpartition('@')[2]!r} is not an http(s) address; write it "
            "like http://HOST:PORT/v1"
        )
    if any(is_secret_header(name) for name in url.params):
        raise ConfigError(
            f"the base URL of {url.host} has a key in its query, which would appear in logs: "
            "give it as a header (the option headers) or as api_key"
        )
    return url, user


def validate_key(key: str | None) -> str | None:
    """Return an API key that a header may hold, or None for an empty one. Raises ConfigError that
    does not show the key."""
    key = (key or "").strip() or None
    if key is not None and not (key.isascii() and key.isprintable()):
        raise ConfigError(
            "the API key has characters that HTTP headers cannot contain; set it again"
        )
    return key
