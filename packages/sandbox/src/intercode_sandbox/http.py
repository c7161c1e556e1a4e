"""HTTP by aiohttp: sessions for asynchronous code, and a synchronous client for downloads."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, BinaryIO, Self, TypeVar
from urllib.request import getproxies, proxy_bypass

from yarl import URL

from intercode_sandbox import event_loop
from intercode_sandbox.clock import SYSTEM_CLOCK, Clock
from intercode_sandbox.errors import ConfigError, DataError

if TYPE_CHECKING:  # imported where it is used, because that takes a tenth of a second
    import aiohttp

T = TypeVar("T")
CONNECT_TIMEOUT = 10.0
"""Seconds in which a connection for a download must be made."""
READ_TIMEOUT = 30.0
"""Seconds without a byte before a download fails."""
MAX_REDIRECTS = 5
_BUFFER_BYTES = 1 << 18
_CHUNKS_AHEAD = 8
_MAX_DELAY = 30.0
_IDLE_SECONDS = 60.0  # servers and load balancers drop idle connections after about as long
_MAX_HEADER_BYTES = 1 << 16


class HttpError(Exception):
    """No usable response arrived; the same request may succeed later. ``retry_after`` is how many
    seconds the server asked to wait."""

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ConnectError(HttpError):
    """No connection was made."""


class TooLongError(DataError):
    """A response is longer than expected."""


def open_session(headers: Mapping[str, str] | None = None) -> aiohttp.ClientSession:
    """Return a session without cookies, decompression and time-outs, with any number of
    connections. Call this on the event loop that will use it."""
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_SECONDS),
        headers=headers,
        skip_auto_headers=("Accept-Encoding",),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        auto_decompress=False,
        read_bufsize=_BUFFER_BYTES,
        max_line_size=_MAX_HEADER_BYTES,
        max_field_size=_MAX_HEADER_BYTES,
    )


def describe_error(error: Exception) -> HttpError:
    """Return the HttpError for an error of aiohttp or of the network.

    It does not refer to the request, which may hold keys.
    """
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return ConnectError(f"ConnectError: {error.certificate_error}")
    if isinstance(error, aiohttp.ClientConnectorError):
        cause = error.os_error
        return ConnectError(f"ConnectError: {type(cause).__name__}: {cause}")
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return ConnectError(f"ConnectError: {error}")
    text = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    return HttpError(f"{type(error).__name__}: {text}")


def ssl_context() -> ssl.SSLContext:
    """Return a context that trusts the authorities of the system and of certifi, or only those
    that SSL_CERT_FILE and SSL_CERT_DIR name."""
    context = ssl.create_default_context()
    if not os.environ.get("SSL_CERT_FILE") and not os.environ.get("SSL_CERT_DIR"):
        import certifi

        context.load_verify_locations(certifi.where())
    return context


def find_proxy(url: URL) -> URL | None:
    """Return the proxy that the environment names for a URL (HTTPS_PROXY and similar variables),
    or None. This machine's own ports are never reached by a proxy. Raises ConfigError."""
    host = url.host or ""
    if is_loopback(host) or proxy_bypass(host):
        return None
    known = getproxies()
    address = known.get(url.scheme) or known.get("all")
    if not address:
        return None
    proxy = URL(address if "://" in address else f"http://{address}")
    if proxy.scheme not in ("http", "https") or not proxy.host:
        raise ConfigError(
            f"the proxy for {host} must be an http:// or https:// address, not "
            f"{proxy.scheme}://: change {url.scheme.upper()}_PROXY or ALL_PROXY"
        )
    return proxy


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is on the loopback interface."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def parse_url(text: str, base: URL | None = None) -> URL:
    """Return an address of HTTP or HTTPS, relative to ``base`` if given. Raises DataError."""
    try:
        url = URL(text) if base is None else base.join(URL(text))
        valid = url.scheme in ("http", "https") and bool(url.host)
    except ValueError:
        valid = False
    if not valid:
        raise DataError(f"{text!r} is not a valid http:// or https:// address")
    return url


class Response:
    """A response whose body is read while it arrives. Created and closed on the event loop.

    A task reads ahead, because aiohttp drops the bytes that it has received if the connection then
    breaks.
    """

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status, self.headers = response.status, response.headers
        self._chunks: asyncio.Queue[bytes | HttpError] = asyncio.Queue(_CHUNKS_AHEAD)
        self._reader = asyncio.create_task(self._read_ahead())

    def chunks(self) -> Iterator[bytes]:
        """Yield the body, once, as it arrives. Raises HttpError."""
        while chunk := event_loop.run_on_loop(self._chunks.get()):
            if isinstance(chunk, HttpError):
                raise chunk
            yield chunk

    def read(self, limit: int) -> bytes:
        """Return the whole body. Raises HttpError, and TooLongError above ``limit`` bytes."""
        data = bytearray()
        for chunk in self.chunks():
            data += chunk
            if len(data) > limit:
                raise TooLongError(f"a document has more than {limit} bytes")
        return bytes(data)

    async def aclose(self) -> None:
        """Keep the connection for the next request if the body has been read, else close it."""
        self._reader.cancel()
        self._response.release()

    async def _read_ahead(self) -> None:
        import aiohttp

        end: bytes | HttpError = b""
        try:
            async for chunk in self._response.content.iter_any():
                await self._chunks.put(chunk)
        except (aiohttp.ClientError, OSError) as e:
            end = describe_error(e)
        await self._chunks.put(end)


class HttpClient:
    """A synchronous client for downloads. Close it, or use it as a context manager.

    It has time-outs for connecting and for every read, and follows redirects, but not from HTTPS to
    HTTP. ``verify`` replaces ``ssl_context()``.
    """

    def __init__(self, verify: ssl.SSLContext | None = None) -> None:
        self._verify = verify or ssl_context()
        self._session: aiohttp.ClientSession | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections. May be called again."""
        event_loop.close_resource(self)

    async def aclose(self) -> None:
        """Close all connections. Called on the event loop."""
        if self._session is not None:
            await self._session.close()

    @contextmanager
    def request(
        self,
        url: URL,
        headers: Mapping[str, str] | None = None,
        *,
        authorization: str = "",
        form: Mapping[str, str] | None = None,
    ) -> Iterator[Response]:
        """Send a GET request, or a POST request with a form, and yield the response.

        ``authorization`` is sent to the host of ``url`` only, not to where it redirects. Raises
        HttpError, and DataError for a redirect that is not followed.
        """
        response = event_loop.run_on_loop(
            self._send(url, {"Accept-Encoding": "identity", **(headers or {})}, authorization, form)
        )
        try:
            yield response
        finally:
            event_loop.run_on_loop(response.aclose())

    async def _send(
        self, url: URL, headers: dict[str, str], authorization: str, form: Mapping[str, str] | None
    ) -> Response:
        import aiohttp

        if self._session is None:
            self._session = open_session()
            event_loop.add_resource(self)
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_TIMEOUT, sock_read=READ_TIMEOUT
        )
        origin = url.origin()
        for _ in range(MAX_REDIRECTS + 1):
            login = {"Authorization": authorization}
            sent = headers | (login if authorization and url.origin() == origin else {})
            try:
                response = await self._session.request(
                    "GET" if form is None else "POST",
                    url,
                    headers=sent,
                    data=form,
                    ssl=self._verify,
                    proxy=find_proxy(url),
                    timeout=timeout,
                    allow_redirects=False,
                )
            except (aiohttp.ClientError, OSError) as e:
                raise describe_error(e) from None
            target = _redirect_target(url, response)
            if target is None:
                return Response(response)
            response.close()
            url = target
        raise DataError(f"{origin.host} redirects more than {MAX_REDIRECTS} times")


def _redirect_target(url: URL, response: aiohttp.ClientResponse) -> URL | None:
    """Return where a response redirects to, or None. Raises DataError for an invalid target, and
    for one that is not encrypted although ``url`` is."""
    location = response.headers.get("Location")
    if response.status not in (301, 302, 303, 307, 308) or location is None:
        return None
    target = parse_url(location, url)
    if url.scheme == "https" and target.scheme != "https":
        raise DataError(
            f"{url.host} redirects to {target.scheme}://{target.host}, which is not encrypted: "
            "refused"
        )
    return target


def retry(attempt: Callable[[], T], attempts: int, delay: float, clock: Clock = SYSTEM_CLOCK) -> T:
    """Call ``attempt`` until it does not raise HttpError, at most ``attempts`` times, and return
    its result. ``delay`` is the pause in seconds after the first failure; it doubles with every
    further one."""
    for number in range(attempts - 1):
        try:
            return attempt()
        except HttpError as e:
            clock.sleep(min(max(e.retry_after, delay * 2**number), _MAX_DELAY))
    return attempt()


def append_rest(
    file: BinaryIO,
    size: int | None,
    request: Callable[[Mapping[str, str]], AbstractContextManager[Response]],
    report: Callable[[int, int], None] | None = None,
) -> None:
    """Request the bytes that a file lacks and append them.

    ``request`` sends one request with the given headers. If the server does not continue the file,
    it is written from its beginning. Without ``size``, the response's Content-Length tells it.
    ``report`` is called with the size so far and the whole size.

    Raises HttpError if the bytes are incomplete, TooLongError if there are more than ``size``,
    which leaves an empty file, and what ``request`` raises.
    """
    have = file.seek(0, os.SEEK_END)
    if size is not None and have > size:
        have = file.seek(0)
        file.truncate()
    with request({"Range": f"bytes={have}-"} if have else {}) as response:
        start = response.headers.get("Content-Range", "")
        continued = response.status == 206 and have and start.startswith(f"bytes {have}-")
        if not continued:
            have = file.seek(0)
            file.truncate()
            if response.status in (206, 416):
                raise HttpError(f"the file cannot be continued (status {response.status})")
        if size is None:
            length = response.headers.get("Content-Length", "")
            if not length.isdigit():
                raise DataError("the server sends no Content-Length: use another server")
            size = have + int(length)
        for chunk in response.chunks():
            have += len(chunk)
            if have > size:
                file.truncate(0)
                raise TooLongError(f"expected {size} bytes, got more")
            file.write(chunk)
            if report is not None:
                report(have, size)
    if have < size:
        raise HttpError(f"the connection ended after {have} of {size} bytes")
