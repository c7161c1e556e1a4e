"""A client's connection to a server of remote sandboxes: one for each process and server.

The event loop of HTTP requests carries requests and streams. If the connection is lost, all
sandboxes that it had opened are lost. The next sandbox that is opened makes a new connection.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from intercode_sandbox import event_loop
from intercode_sandbox.errors import (
    ConfigError,
    SandboxError,
    SandboxLostError,
    SandboxUnavailableError,
)
from intercode_sandbox.http import is_loopback
from intercode_sandbox.platforms.forks import ForkSafeLock
from intercode_sandbox.remote.connection_end import ConnectionEnd
from intercode_sandbox.remote.protocol import (
    MAX_FRAME,
    MAX_HEADER,
    PATH,
    VERSION,
    Kind,
    ProtocolError,
    pack_message,
    parse_error,
    parse_frame,
    parse_message,
    printable,
)
from intercode_sandbox.remote.relay import Relay

TOKEN_VARIABLE = "INTERCODE_REMOTE_TOKEN"
INSECURE_PREFIX = "insecure-http://"
HEARTBEAT_SECONDS = 10.0
ANSWER_SECONDS = 120.0
"""Time for an answer. The server has limits of its own, and the heartbeat shows that it lives."""
UPLOAD_SECONDS = 1800.0
"""Time for the upload of one archive."""
BUILD_SECONDS = 3600.0
"""Time in which a server builds an image, or keeps the changes of a sandbox as a layer."""
_CONNECT_SECONDS = 10.0
_PAUSES = (0.1, 0.3, 1.0, 3.0, 5.0, 10.0, 10.0)  # seconds before further attempts to connect
_NO_ANSWER = (aiohttp.ClientError, OSError, TypeError, TimeoutError, ProtocolError)
_NO_SERVER = (502, 503, 504)  # the server is full, or a proxy finds none behind it


def server_address(url: str) -> str:
    """Return the HTTP address of the server that a URL names. Raises ConfigError.

    Plain HTTP is refused except to this machine, because the token and everything else could be
    read and changed on the way; ``insecure-http://`` allows it for a network that is trusted.
    """
    insecure = url.startswith(INSECURE_PREFIX)
    address = "http://" + url.removeprefix(INSECURE_PREFIX) if insecure else url
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"{url!r} is not the address of a server of sandboxes: write remote:https://HOST"
        )
    if parts.username is not None or parts.query or parts.fragment:
        raise ConfigError(
            f"the address of {parts.hostname} may have only a scheme, a host, a port and a path, "
            f"because results record it: put the token into the variable {TOKEN_VARIABLE}"
        )
    if parts.scheme == "http" and not insecure and not is_loopback(parts.hostname):
        raise ConfigError(
            f"{url} is not encrypted: anybody on the way could read the token and change results. "
            f"Use https://, or remote:{INSECURE_PREFIX}{parts.netloc} in a network that you trust"
        )
    return address.rstrip("/")


class Connection:
    """A connection to the server at ``url``. ``greeting``: what the server says of itself.

    Raises SandboxUnavailableError if the server does not answer, ConfigError if it refuses.
    """

    def __init__(self, url: str) -> None:
        self.url, self._address = url, server_address(url)
        self.uploaded: dict[str, str] = {}
        """References of layers at the server, by their digests here."""
        self._numbers = itertools.count(1)
        self._pending: dict[int, Future[tuple[dict[str, Any], bytes]]] = {}
        self._losses: dict[int, Callable[[Exception], None]] = {}
        self._lost: BaseException | None = None
        self._owner = os.getpid()  # the loop of a forked child is another
        self._end = ConnectionEnd(passes_descriptors=True)
        self.greeting = event_loop.run_on_loop(self._open())

    @property
    def is_lost(self) -> bool:
        """Whether the connection has ended, or is that of the parent of this process."""
        return self._lost is not None or self._owner != os.getpid()

    def next_number(self) -> int:
        """Return a number that no other request or sandbox of this connection has."""
        return next(self._numbers)

    def lost_error(self) -> SandboxLostError:
        """Return the error for a sandbox of this connection after its end."""
        return SandboxLostError(f"the connection to {self.url} was lost: {self._lost or 'a fork'}")

    # ------------------------------------------------------------ from any thread
    def request(
        self,
        operation: str,
        body: bytes = b"",
        *,
        seconds: float = ANSWER_SECONDS,
        before: Callable[[], None] | None = None,
        **arguments: Any,
    ) -> tuple[dict[str, Any], bytes]:
        """Send a request and return the answer and its body.

        ``before`` runs in the event loop before the request is sent. Raises SandboxLostError if
        the connection is lost, OSError for arguments that are too long, and the errors that the
        server reports.
        """
        message = pack_message({"do": operation, **arguments}, body)
        if len(message) - len(body) > MAX_HEADER:  # such as the arguments of a program
            raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))
        number, future = self.next_number(), Future[tuple[dict[str, Any], bytes]]()

        def submit() -> None:
            try:
                if self.is_lost:
                    raise self.lost_error()
                if before is not None:
                    before()
                self._pending[number] = future
                self._end.send_message(number, message)
            except (OSError, SandboxLostError) as e:
                future.set_exception(e)

        self._call(submit)
        if not wait([future], seconds).done:
            raise SandboxLostError(f"{self.url} gave no answer for {seconds:g} s")
        return future.result()

    def notify(self, operation: str, **arguments: Any) -> None:
        """Send a request that has no answer. Does nothing if the connection is lost."""
        message = pack_message({"do": operation, **arguments})
        with suppress(SandboxLostError):
            self._call(lambda: self._end.send_message(0, message))

    def _call(self, action: Callable[[], None]) -> None:
        if self.is_lost:
            raise self.lost_error()
        try:
            self._loop.call_soon_threadsafe(action)
        except RuntimeError as e:  # the loop is closed
            raise self.lost_error() from e

    def drop_channels(self, numbers: list[int]) -> None:
        """Close streams whose program was not started."""
        with suppress(SandboxLostError):
            self._call(lambda: self.relay.drop(numbers))

    def close_streams(self, sandbox: int) -> None:
        """Close the streams of a sandbox, which continues."""
        with suppress(SandboxLostError):
            self._call(lambda: self.relay.close_sandbox(sandbox))

    def close_sandbox(self, sandbox: int) -> None:
        """Forget a sandbox and close its streams."""

        with suppress(SandboxLostError):
            self._call(lambda: self._forget_sandbox(sandbox))

    def on_loss(self, sandbox: int, report: Callable[[Exception], None]) -> None:
        """Call ``report`` when the server ends a sandbox by itself, or the connection is lost."""
        self._losses[sandbox] = report

    @property
    def relay(self) -> Relay:
        """The streams of this connection."""
        return self._end.relay

    def upload(self, digest: str, archive: Path) -> None:
        """Send the archive of a layer. Raises SandboxError if the server refuses it."""
        event_loop.run_on_loop(self._upload(digest, archive))

    # --------------------------------------------------------- in the event loop
    async def _upload(self, digest: str, archive: Path) -> None:
        if self.is_lost:
            raise self.lost_error()
        try:
            with archive.open("rb") as file:
                async with (
                    asyncio.timeout(UPLOAD_SECONDS),
                    self._session.put(f"{self._address}/layers/{digest}", data=file) as response,
                ):
                    if response.status != 200:
                        text = (await response.content.read(500)).decode("utf-8", "replace")
                        raise SandboxError(f"{self.url} refused a layer: {printable(text)}")
        except (aiohttp.ClientError, TimeoutError) as e:
            reason = str(e) or f"no answer for {UPLOAD_SECONDS:g} s"
            raise SandboxLostError(f"{self.url} did not take a layer: {reason}") from e

    async def _open(self) -> dict[str, str]:
        """Connect to the server, and return its greeting."""
        self._loop = asyncio.get_running_loop()
        token = os.environ.get(TOKEN_VARIABLE)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
        redirects = aiohttp.TraceConfig()
        redirects.on_request_redirect.append(_refuse_redirect)
        self._session = aiohttp.ClientSession(
            headers=headers, timeout=timeout, trace_configs=[redirects]
        )
        greeting: dict[str, str] = {}
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                socket = await self._session.ws_connect(
                    self._address + PATH, heartbeat=HEARTBEAT_SECONDS, max_msg_size=MAX_FRAME
                )
                greeting = _parse_greeting(await socket.receive_bytes())
        except _NO_ANSWER as e:
            raise _refusal(self.url, e) from e
        finally:
            if not greeting:
                await self._session.close()
        event_loop.add_resource(self)
        self._communication = asyncio.ensure_future(self._communicate(socket))
        return greeting

    async def _communicate(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        writer = asyncio.ensure_future(self._end.write_frames(socket))
        cause: BaseException | None = None
        try:
            async for message in socket:
                if message.type is not aiohttp.WSMsgType.BINARY:
                    raise ProtocolError("a message that is not binary")
                self._receive(message.data)
        except (ProtocolError, OSError, aiohttp.ClientError) as e:
            cause = e
        finally:
            writer.cancel()
            self._lose(cause or socket.exception() or ConnectionError("the server closed it"))
            try:
                await socket.close()
            finally:  # ``aclose`` may cancel that
                await self._session.close()

    async def aclose(self) -> None:
        """Close the connection, at the end of the loop."""
        self._communication.cancel()
        await asyncio.wait([self._communication])

    def _receive(self, data: bytes) -> None:
        kind, number, payload = parse_frame(data)
        if kind in (Kind.PART, Kind.MESSAGE):
            self._receive_answer(kind, number, payload)
        elif kind is Kind.LOST:
            header, _ = parse_message(payload)
            if (lost := self._losses.get(number)) is not None:
                lost(parse_error(header, self.url))
                self._forget_sandbox(number)
        else:
            self.relay.receive(kind, number, payload)

    def _forget_sandbox(self, sandbox: int) -> None:
        self._losses.pop(sandbox, None)
        self.relay.close_sandbox(sandbox)

    def _receive_answer(self, kind: Kind, number: int, payload: bytes) -> None:
        if number not in self._pending:
            raise ProtocolError("an answer to no request")
        message = self._end.receive_part(kind, number, payload)
        if message is None:
            return
        header, body = parse_message(message)
        future = self._pending.pop(number)  # not before: ``_lose`` reports to those that are left
        if "error" in header:
            future.set_exception(parse_error(header["error"], self.url))
        else:
            future.set_result((header, body))

    def _lose(self, cause: BaseException) -> None:
        """Report the end of the connection to all who wait for something of it."""
        self._lost = self._lost or cause
        self.relay.close()
        for future in self._pending.values():
            future.set_exception(self.lost_error())
        self._pending.clear()
        for lost in list(self._losses.values()):
            lost(self.lost_error())


def _parse_greeting(data: bytes) -> dict[str, str]:
    """Return what a server says of itself. Raises ProtocolError."""
    header, _ = parse_message(data)
    if header.get("version") != VERSION:
        raise ProtocolError(
            f"its protocol has the version {header.get('version')!r}, this one {VERSION}: "
            "install the same version of intercode on both machines"
        )
    return {name: printable(str(header.get(name, ""))[:100]) for name in ("tier", "machine")}


async def _refuse_redirect(_: object, __: object, request: Any) -> None:
    """Raise ConfigError, because the address that the user gave is the one that is checked."""
    raise ConfigError(
        f"{request.url} answers with a redirection, which is not followed: name the server itself"
    )


def _refusal(url: str, error: BaseException) -> Exception:
    """Return the error for a server that does not answer, or refuses the connection."""
    if not isinstance(error, aiohttp.WSServerHandshakeError):
        text = error.strerror if isinstance(error, aiohttp.ClientConnectorError) else str(error)
        return SandboxUnavailableError(
            f"no server of sandboxes answers at {url}: {text or type(error).__name__}"
        )
    status = error.status
    if status in (401, 403):
        return ConfigError(
            f"{url} refuses this client ({status}): set {TOKEN_VARIABLE} to the token of the server"
        )
    if status in _NO_SERVER:
        return SandboxUnavailableError(
            f"{url} answers {status}: it has no room for more connections of this client, or it is "
            "a proxy and the server behind it does not run"
        )
    return ConfigError(
        f"{url} is no server of sandboxes ({status}): run `intercode-sandbox serve` there"
    )


# ---------------------------------------------------------------- the connections
_connections: dict[tuple[int, str], Connection] = {}  # a forked child has no thread
_lock = ForkSafeLock()


def connect(url: str) -> Connection:
    """Return the connection of this process to a server, or make one, with a few attempts.

    Raises SandboxUnavailableError, or ConfigError if the server refuses this client.
    """
    with _lock:
        key = (os.getpid(), url)
        found = _connections.get(key)
        if found is not None and not found.is_lost:
            return found
        if found is not None:
            event_loop.close_resource(found)
        # a server that was there may be starting again; one that was never there is an error
        for pause in _PAUSES if _connections.pop(key, None) is not None else ():
            with suppress(SandboxUnavailableError):
                _connections[key] = Connection(url)
                return _connections[key]
            time.sleep(pause)
        _connections[key] = Connection(url)
        return _connections[key]
