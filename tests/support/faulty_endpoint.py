"""A chat endpoint on this machine with a list of faults, one for each request."""

from __future__ import annotations

import json
import math
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import pytest

Fault = Callable[["Handler"], None]
_PATIENCE = 600.0  # seconds that a fault lasts if the endpoint is not closed


def completion(content: Any = "fine", **changes: Any) -> dict[str, Any]:
    """Return the body of a valid answer."""
    return {
        "model": "m-2024",
        "choices": [
            {"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 2},
    } | changes


def status(code: int, body: Any = None, **headers: str) -> Fault:
    """Return an answer with that status; a dict is sent as JSON, bytes as they are."""

    def play(handler: Handler) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return play


def ok(content: Any = "fine", **changes: Any) -> Fault:
    """Return a valid answer."""
    return status(200, completion(content, **changes))


def streamed(
    *events: Any, pause: float = 0.0, end: str = "data: [DONE]\n\n", comment: str = ": ping\n\n"
) -> Fault:
    """Return a stream of events, each after a pause and a comment. Those with a type are named
    after it."""

    def play(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream; charset=utf-8")
        handler.end_headers()
        for event in events:
            time.sleep(pause)
            kind = event.get("type") if isinstance(event, dict) else None
            name = f"event: {kind}\n" if kind else ""
            handler.wfile.write(f"{comment}{name}data: {json.dumps(event)}\n\n".encode())
        handler.wfile.write(end.encode())
        handler.close_connection = True

    return play


def silent_after(*events: Any, **options: Any) -> Fault:
    """Return a stream that says nothing more after some events, until the server is closed."""

    def play(handler: Handler) -> None:
        streamed(*events, **options, end="")(handler)
        handler.wfile.flush()
        handler.endpoint.closing.wait(_PATIENCE)

    return play


def hang(handler: Handler) -> None:
    """Never answers, until the server is closed."""
    handler.endpoint.closing.wait(_PATIENCE)
    handler.close_connection = True


def trickle(handler: Handler) -> None:
    """Sends a byte now and then and never ends, so that no single read times out."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    try:
        while not handler.endpoint.closing.wait(0.05):
            handler.wfile.write(b" ")
    except OSError:
        pass
    handler.close_connection = True


def reset(handler: Handler) -> None:
    """Drops the connection with a TCP reset."""
    linger = struct.pack("ii", 1, 0)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.close_connection = True
    handler.rfile.close()
    handler.wfile.close()
    handler.connection.close()


def short_body(handler: Handler) -> None:
    """Announces more bytes than it sends."""
    handler.send_response(200)
    handler.send_header("Content-Length", "5000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.close_connection = True


def limit_first_attempt(patch: pytest.MonkeyPatch, server: FaultyEndpoint, seconds: float) -> None:
    """Give attempts this time until one has arrived, and those after it all they need."""
    limit = property(lambda _: math.inf if server.requests else seconds)
    patch.setattr("intercode.models.endpoint.Endpoint.attempt_timeout", limit)


class Handler(BaseHTTPRequestHandler):
    """Applies the endpoint's next fault."""

    protocol_version = "HTTP/1.1"
    endpoint: FaultyEndpoint
    body: dict[str, Any]

    def do_POST(self) -> None:
        self.body = body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.endpoint.next_fault(self.path, body, dict(self.headers))(self)

    def do_GET(self) -> None:
        self.endpoint.next_fault(self.path, {}, dict(self.headers))(self)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


class FaultyEndpoint:
    """Serves the faults in order, the last one from then on; ``requests`` and ``headers`` record
    what was received."""

    def __init__(self, *faults: Fault, tls: ssl.SSLContext | None = None) -> None:
        self.faults = faults
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.closing = threading.Event()
        self._lock = threading.Lock()
        handler = type("BoundHandler", (Handler,), {"endpoint": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def next_fault(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> Fault:
        with self._lock:
            self.paths.append(path)
            self.requests.append(body)
            self.headers.append(headers)
            return self.faults[min(len(self.requests), len(self.faults)) - 1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
