"""HTTP: TLS, proxies, reused connections, invalid responses."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from intercode.core.errors import ModelRefusedError, ModelUnavailableError
from intercode.models import Message, OpenAIModel
from intercode.models.transport.retry import RetryPolicy
from support.certificates import certificate
from support.faulty_endpoint import FaultyEndpoint, completion, ok, status
from support.sandboxes import eventually

ASK: list[Message] = [{"role": "user", "content": "hello"}]
ONCE = RetryPolicy(max_attempts=1)


def test_tls_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, cert = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with FaultyEndpoint(ok("safe"), tls=context) as server:
        url = server.base_url.replace("http:", "https:")
        with (
            OpenAIModel("m", url, retry=ONCE) as stranger,
            pytest.raises(ModelUnavailableError, match="CERTIFICATE_VERIFY_FAILED"),
        ):
            stranger.complete(ASK)
        assert server.requests == []
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        with OpenAIModel("m", url, retry=ONCE) as friend:
            assert [friend.complete(ASK).text for _ in range(2)] == ["safe", "safe"]


def test_a_proxy_is_used_for_other_hosts_and_never_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with FaultyEndpoint(ok("by proxy")) as proxy, FaultyEndpoint(ok("direct")) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", proxy.base_url.removesuffix("/v1"))
        with OpenAIModel("m", "http://models.invalid/v1", api_key="sk-12345678") as model:
            assert [model.complete(ASK).text for _ in range(2)] == ["by proxy"] * 2
        with OpenAIModel("m", server.base_url) as model:
            assert model.complete(ASK).text == "direct"
    assert proxy.paths == ["http://models.invalid/v1/chat/completions"] * 2
    assert proxy.headers[0]["Authorization"] == "Bearer sk-12345678"
    assert len(server.requests) == 1


@contextmanager
def raw_server(talk: Callable[[socket.socket, int], None]) -> Iterator[tuple[str, list[int]]]:
    """A server that sends plain bytes; yields its base URL and the numbers of its connections."""
    connections: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                connections.append(len(connections))
                with peer:
                    talk(peer, connections[-1])

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", connections
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def request_of(peer: socket.socket) -> bytes:
    """Read one whole request."""
    data = b""
    while b"\r\n\r\n" not in data:
        got = peer.recv(65536)
        if not got:
            return b""
        data += got
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += peer.recv(65536)
    return data


def body_of(text: str) -> bytes:
    import json

    return json.dumps(completion(text)).encode()


def test_a_connection_that_the_server_has_closed_is_not_used_again() -> None:
    def talk(peer: socket.socket, number: int) -> None:
        request_of(peer)
        body = body_of(str(number))
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    with raw_server(talk) as (url, connections), OpenAIModel("m", url, retry=ONCE) as model:
        texts = []
        for _ in range(3):
            texts.append(model.complete(ASK).text)
            _settle(model)
    assert texts == ["0", "1", "2"]
    assert len(connections) == 3


def _settle(model: OpenAIModel) -> None:
    """Wait until the loop has noticed that the server closed the connection."""
    lane = model._shared.channel
    assert lane is not None
    idle = lane.client._session.connector._conns
    eventually(
        lambda: not any(c.is_connected() for group in idle.values() for c, _ in group),
        "the connection is closed",
    )


def test_a_connection_is_used_again() -> None:
    def talk(peer: socket.socket, number: int) -> None:
        while request_of(peer):
            body = body_of(str(number))
            chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
            peer.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")
            peer.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk)

    with raw_server(talk) as (url, connections), OpenAIModel("m", url, retry=ONCE) as model:
        assert [model.complete(ASK).text for _ in range(4)] == ["0"] * 4
    assert len(connections) == 1


@pytest.mark.parametrize(
    "message",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200\r\nContent-Length: x\r\n\r\n",
        b"",
        b"\0" * 99,
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * (2 << 20),
    ],
    ids=["another protocol", "no length", "nothing", "zeros", "an endless header"],
)
def test_an_invalid_http_response_is_an_error(message: bytes) -> None:
    def talk(peer: socket.socket, number: int) -> None:
        request_of(peer)
        try:
            peer.sendall(message)
        except OSError:
            pass  # the client has closed the connection

    with (
        raw_server(talk) as (url, _),
        OpenAIModel("m", url, retry=ONCE) as model,
        pytest.raises(ModelUnavailableError, match="1 attempts failed"),
    ):
        model.complete(ASK)


def test_an_answer_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from intercode.models.transport import http

    monkeypatch.setattr(http, "MAX_RESPONSE_BYTES", 1 << 20)
    large: Any = status(200, b" " * (3 << 20))
    with (
        FaultyEndpoint(large) as server,
        OpenAIModel("m", server.base_url, retry=ONCE) as model,
        pytest.raises(ModelUnavailableError, match="1 MiB"),
    ):
        model.complete(ASK)


def test_the_error_of_a_moved_endpoint_names_the_new_address() -> None:
    moved = status(301, b"", Location="https://elsewhere.example/v1/chat/completions")
    with (
        FaultyEndpoint(moved) as server,
        OpenAIModel("m", server.base_url, retry=ONCE) as model,
        pytest.raises(ModelRefusedError, match=r"elsewhere\.example.*base URL"),
    ):
        model.complete(ASK)
