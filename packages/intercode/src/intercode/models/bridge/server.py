"""The HTTP server of a bridge: keys, limits on requests, and the protocols by their paths."""

from __future__ import annotations

import hmac
import json
import os
import queue
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from types import ModuleType
from typing import Any, Self
from urllib.parse import urlsplit

from intercode.core.types.untrusted import parse_untrusted
from intercode.models.base import Completion
from intercode.models.bridge import chat, messages, responses
from intercode.models.bridge.requests import BridgeRequest, Event, InvalidRequestError
from intercode.models.token_count import estimate_tokens

MAX_REQUEST_BYTES = 8 << 20
MAX_CONNECTIONS = 16
MAX_REFUSALS = 100
"""After so many refused requests, a bridge stops."""
MAX_UNPAID_SECONDS = 10.0
"""The processor time of this machine that a program may use for requests that get no answer of the
model, such as those that count tokens. Later ones are refused."""
_READ_SECONDS = 60.0
_PROTOCOLS: dict[str, ModuleType] = {
    path: protocol for protocol in (chat, responses, messages) for path in protocol.PATHS
}


class RequestRefusedError(Exception):
    """A request that cannot be answered, for a reason that the program is told."""

    def __init__(
        self, message: str, status: int = 400, kind: str = "invalid_request_error"
    ) -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


def _over() -> RequestRefusedError:
    return RequestRefusedError("the episode is over", 403, "permission_error")


class BridgeStoppedError(Exception):
    """A program has sent too many requests that cannot be read."""


class _Waiting:
    """A request that waits for its answer."""

    def __init__(self, protocol: ModuleType, body: bytes) -> None:
        self.protocol, self.body = protocol, body
        self.done = threading.Event()
        self.outcome: tuple[Completion, BridgeRequest] | RequestRefusedError = _over()


class Bridge:
    """Takes the requests of a program at a listening socket, and has its owner answer them.

    ``key`` is what the program has to send. ``answer`` returns the answer to a request. The owner
    calls ``serve`` whenever ``fileno`` is readable, so that all answers are given in its thread,
    and ``close`` from the same thread.
    """

    def __init__(
        self,
        listener: socket.socket,
        key: str,
        model: str,
        answer: Callable[[BridgeRequest], Completion],
    ) -> None:
        self.model = model
        self.refusals = 0
        self.port = int(listener.getsockname()[1])
        self._listener, self._key, self._answer = listener, key, answer
        self._is_closed = False
        self._waiting: queue.SimpleQueue[_Waiting] = queue.SimpleQueue()
        self._wake_in, self._wake_out = os.pipe()
        self._lock = threading.Lock()  # between a request that arrives and the end
        self._free = threading.Semaphore(MAX_CONNECTIONS)
        self._counting = threading.Lock()  # so that one large request is decoded at a time
        self._unpaid_seconds = 0.0
        self._connections: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._accept, name="intercode-bridge", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """Return a descriptor that is readable when ``serve`` has something to do."""
        return self._wake_in

    def serve(self) -> None:
        """Answer one request. Raises what ``answer`` raises, other than RequestRefusedError, and
        BridgeStoppedError after too many refusals; the program then gets no answer."""
        os.read(self._wake_in, 1)
        if self.refusals >= MAX_REFUSALS:
            raise BridgeStoppedError(f"{self.refusals} requests of the program were refused")
        waiting = self._waiting.get_nowait()
        try:
            request = waiting.protocol.parse_request(_decode(waiting.body))
            waiting.outcome = self._answer(request), request
        except InvalidRequestError as e:
            waiting.outcome = RequestRefusedError(str(e))
        except RequestRefusedError as e:
            waiting.outcome = e
        finally:
            waiting.done.set()

    def close(self) -> None:
        """Close the port and all connections. Requests that wait are refused."""
        with self._lock:
            self._is_closed = True
        while not self._waiting.empty():
            self._waiting.get_nowait().done.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        os.close(self._wake_in)
        os.close(self._wake_out)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------- in the threads of connections
    def _accept(self) -> None:
        while True:
            self._free.acquire()
            try:
                connection, address = self._listener.accept()
            except OSError:
                return
            self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection, address), daemon=True).start()

    def _serve(self, connection: socket.socket, address: Any) -> None:
        try:
            with connection, suppress(OSError):
                _Handler(connection, address, self)  # type: ignore[arg-type]
        finally:
            self._connections.discard(connection)
            self._free.release()

    def is_allowed(self, given: str) -> bool:
        """Return whether a key is that of the episode."""
        return hmac.compare_digest(given.encode(), self._key.encode())

    def wait_for_answer(
        self, protocol: ModuleType, body: bytes
    ) -> tuple[Completion, BridgeRequest]:
        """Return the owner's answer to the body of a request. Raises RequestRefusedError."""
        waiting = _Waiting(protocol, body)
        with self._lock:
            if self._is_closed:
                raise _over()
            self._waiting.put(waiting)
            os.write(self._wake_out, b".")
        waiting.done.wait()
        if isinstance(waiting.outcome, RequestRefusedError):
            raise waiting.outcome
        return waiting.outcome

    def count_tokens(self, body: bytes) -> int:
        """Return the tokens of a request of Anthropic's protocol. Raises InvalidRequestError, and
        RequestRefusedError if the program has used up its time."""
        with self._counting:
            self.check_unpaid()
            request = messages.parse_request(_decode(body))
            return estimate_tokens(request.messages, self.model, request.tools)

    def charge(self, seconds: float) -> None:
        """Count processor time as that of a connection without an answer of the model. When the
        time is used up, each such connection is a refused request."""
        with self._lock:
            self._unpaid_seconds += seconds
            is_over = self._unpaid_seconds > MAX_UNPAID_SECONDS
        if is_over:
            self.count_refusal()

    def check_unpaid(self) -> None:
        """Raise RequestRefusedError if the program has used up its time for such requests."""
        if self._unpaid_seconds > MAX_UNPAID_SECONDS:
            raise RequestRefusedError(
                "this program has sent too many requests that ask for no answer of the model",
                429,
                "rate_limit_error",
            )

    def count_refusal(self) -> None:
        """Count a refused request, and wake the owner after too many."""
        with self._lock:
            self.refusals += 1
            if self.refusals == MAX_REFUSALS and not self._is_closed:
                os.write(self._wake_out, b".")


class _Handler(BaseHTTPRequestHandler):
    """Serves one request of a program. ``server`` is the bridge."""

    protocol_version = "HTTP/1.1"
    timeout = _READ_SECONDS
    server: Bridge  # type: ignore[assignment]

    def handle(self) -> None:
        """Serve the request, and charge the program for its time unless the model has answered."""
        before = time.thread_time()
        self.is_answered = False
        try:
            super().handle()
        finally:
            if not self.is_answered:
                self.server.charge(time.thread_time() - before)

    def do_HEAD(self) -> None:
        """Say that somebody is there: some programs ask before their first request."""
        try:
            self.server.check_unpaid()
        except RequestRefusedError as e:
            return self._refuse(chat, e)
        return self._send(200, b"")

    def do_GET(self) -> None:
        """Send the list of models."""
        try:
            self.server.check_unpaid()
            if urlsplit(self.path).path.removeprefix("/v1").rstrip("/") != "/models":
                raise RequestRefusedError("no such path", 404, "not_found_error")
        except RequestRefusedError as e:
            return self._refuse(chat, e)
        model = {"id": self.server.model, "object": "model", "created": 0, "owned_by": "intercode"}
        return self._send_json(200, {"object": "list", "data": [model]})

    def do_POST(self) -> None:
        """Answer a request of the protocol that belongs to the path."""
        path = urlsplit(self.path).path.rstrip("/")
        counts = path in messages.COUNT_PATHS
        protocol = messages if counts else _PROTOCOLS.get(path, chat)
        try:
            self._check_key()
            if not counts and path not in _PROTOCOLS:
                raise RequestRefusedError(f"no such path: {path[:100]}", 404, "not_found_error")
            body = self._read_body()
            if counts:
                return self._send_json(200, {"input_tokens": self.server.count_tokens(body)})
            completion, request = self.server.wait_for_answer(protocol, body)
            self.is_answered = True
        except InvalidRequestError as e:
            return self._refuse(protocol, RequestRefusedError(str(e)))
        except RequestRefusedError as e:
            return self._refuse(protocol, e)
        name = secrets.token_hex(12)
        if not request.stream:
            return self._send_json(200, protocol.response(completion, request, name))
        stream = _encode_events(protocol.events(completion, request, name), protocol is chat)
        return self._send(200, stream, "text/event-stream")

    def _check_key(self) -> None:
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ").strip()
        if not self.server.is_allowed(self.headers.get("x-api-key") or bearer):
            raise RequestRefusedError(
                "not the key of this episode: take OPENAI_API_KEY or ANTHROPIC_API_KEY",
                401,
                "authentication_error",
            )

    def _read_body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()):
            raise RequestRefusedError("the request has no Content-Length", 411)
        if len(length) > 12 or int(length) > MAX_REQUEST_BYTES:
            text = f"the request has more than {MAX_REQUEST_BYTES} bytes"
            raise RequestRefusedError(text, 413, "request_too_large")
        return self.rfile.read(int(length))

    def _refuse(self, protocol: ModuleType, error: RequestRefusedError) -> None:
        self.server.count_refusal()
        self._send_json(error.status, protocol.error(error.kind, str(error)))

    def _send_json(self, status: int, data: Any) -> None:
        self._send(status, json.dumps(data).encode())

    def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.close_connection = True
        self.send_response(HTTPStatus(status))
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        if status == 403:
            self.send_header("x-should-retry", "false")  # the clients of OpenAI and Anthropic
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Print nothing."""


def _decode(body: bytes) -> Any:
    try:
        return parse_untrusted(body)
    except ValueError as e:
        raise InvalidRequestError(f"the body is not JSON: {e}") from e


def _encode_events(events: Any, is_chat: bool) -> bytes:
    """Return the body of a streamed answer."""
    parts: list[str] = []
    event: Event
    for event in events:
        name, data = event
        parts.append((f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n")
    return "".join([*parts, "data: [DONE]\n\n" if is_chat else ""]).encode()
