"""Who may use a server of sandboxes, how much, and what it does with messages that are not
valid."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import os
import socket
import struct
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from intercode_sandbox import Limits
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.errors import (
    ConfigError,
    SandboxError,
    SandboxLostError,
    SandboxUnavailableError,
    UsageError,
)
from intercode_sandbox.remote.connection import Connection, connect, server_address
from intercode_sandbox.remote.protocol import (
    MAX_FRAME,
    MAX_HEADER,
    VERSION,
    WINDOW,
    Kind,
    frame,
    pack_message,
    parse_frame,
    parse_message,
    spec_values,
)
from support.sandbox_server import ServerProcess, serving_sandboxes

pytestmark = [pytest.mark.sandbox, pytest.mark.namespace_only]
TOKEN = "a-token-of-this-test"


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    """A server with small limits and a token."""
    limits = ("sandboxes=2", "memory=1g", "uploads=1g", "cpu_seconds=1")
    options = (f"--limit={limit}" for limit in limits)
    with serving_sandboxes(*options, token=TOKEN) as started:
        yield started


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERCODE_REMOTE_TOKEN", TOKEN)


@pytest.mark.parametrize("given", ["", "another"])
def test_another_token_is_refused(
    server: ServerProcess, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERCODE_REMOTE_TOKEN", given)
    with pytest.raises(ConfigError, match=r"401.*INTERCODE_REMOTE_TOKEN"):
        Connection(server.url)


def test_a_web_page_of_another_origin_is_refused(server: ServerProcess) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Origin": "http://example.org"}
    request = urllib.request.Request(f"{server.url}/sandboxes", headers=headers)
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request)
    assert caught.value.code == 403


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://sandboxes.example", "not encrypted"),
        ("https://token@sandboxes.example", "INTERCODE_REMOTE_TOKEN"),
        ("ftp://sandboxes.example", "is not the address"),
    ],
)
def test_unsafe_addresses_are_refused(url: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        server_address(url)


def test_plain_http_is_possible_when_it_is_named() -> None:
    assert server_address("insecure-http://host:8000") == "http://host:8000"
    assert server_address("http://[::1]:8000/") == "http://[::1]:8000"


def test_a_client_gets_no_more_than_the_limits(server: ServerProcess) -> None:
    for limits, name in ((Limits(memory=2 << 30), "memory"), (Limits(processes=9999), "processes")):
        with pytest.raises(UsageError, match=f"{name}="):
            BaseSandbox.open("host", server.kind, limits=limits)
    with pytest.raises(UsageError, match="--allow-network"):
        BaseSandbox.open("host", server.kind, network="host")
    with BaseSandbox.open("host", server.kind) as sandbox:
        sandbox.mark()
        assert sandbox.run("while :; do :; done", timeout=120).exit_code not in (0, None)
        assert sandbox.limit_exceeded() == "cpu"


def test_a_client_waits_for_room(server: ServerProcess) -> None:
    with BaseSandbox.open("host", server.kind) as first, first.fork() as second:
        connection = connect(server.url)
        number = connection.next_number()
        with pytest.raises(SandboxLostError, match="no answer"):
            connection.request("open", sandbox=number, spec=_spec(first), seconds=0.5)
        connection.notify("close", sandbox=number)
        with ThreadPoolExecutor() as threads:
            third = threads.submit(BaseSandbox.open, "host", server.kind)
            with pytest.raises(TimeoutError):
                third.result(0.3)
            second.close()
            with third.result(60) as opened:
                assert opened.run("true").ok


def _spec(sandbox: BaseSandbox) -> dict[str, object]:
    return spec_values(sandbox.spec, [])


def test_an_archive_must_be_what_its_name_says(server: ServerProcess, tmp_path: Path) -> None:
    archive = tmp_path / "layer.tar"
    archive.write_bytes(b"not an archive")
    with BaseSandbox.open("host", server.kind) as sandbox:
        connection = connect(server.url)
        with pytest.raises(SandboxError, match="another SHA-256"):
            connection.upload("0" * 64, archive)
        archive.write_bytes(gzip.compress(b"x"))
        name = hashlib.sha256(archive.read_bytes()).hexdigest()
        with pytest.raises(SandboxError, match="must not be compressed"):
            connection.upload(name, archive)
        for name in ("0" * 63, "..%2f..%2fx"):
            with pytest.raises(SandboxError, match="refused a layer"):
                connection.upload(name, archive)
        for reference in ("archive:" + "1" * 64, "capture:" + "1" * 32, "dir:/etc", 7):
            values = _spec(sandbox) | {"layers": [reference]}
            with pytest.raises((UsageError, SandboxError), match="layer"):
                connection.request("open", sandbox=connection.next_number(), spec=values)


def _answer(url: str, data: bytes) -> bytes:
    """Send a frame to a server and return the one that it answers, or nothing if it closes the
    connection."""

    async def talk() -> bytes:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.ws_connect(f"{url}/sandboxes") as socket,
        ):
            await socket.receive_bytes()
            with suppress(ConnectionError):
                await socket.send_bytes(data)
            message = await socket.receive(timeout=20)
            answer: bytes = message.data if message.type is aiohttp.WSMsgType.BINARY else b""
            return answer

    return asyncio.run(talk())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\0\0\0\1",
        frame(Kind.LOST, 1),
        frame(Kind.MESSAGE, 1, b"\0\0"),
        frame(Kind.MESSAGE, 1, struct.pack(">I", MAX_HEADER + 1)),
        frame(Kind.MESSAGE, 1, pack_message({"do": ["open"]})),
        frame(Kind.MESSAGE, 1, struct.pack(">I", 2) + b"[]"),
        frame(Kind.MESSAGE, 1, struct.pack(">I", 100_000) + b"[" * 100_000),
        frame(Kind.MESSAGE, 1, b"x" * MAX_FRAME),
    ],
    ids=["empty", "unknown", "lost", "short", "header", "operation", "list", "deep", "long"],
)
def test_frames_that_are_not_valid_end_the_connection(server: ServerProcess, data: bytes) -> None:
    assert _answer(server.url, data) == b""


def test_requests_that_are_not_valid_are_answered_with_errors(server: ServerProcess) -> None:
    requests = [
        {"do": "open", "sandbox": -1, "spec": {}},
        {"do": "open", "sandbox": 1, "spec": {"image": "host", "layers": []}},
        {"do": "open", "sandbox": 1, "spec": 5},
        {"do": "read", "sandbox": 1, "path": "/etc/passwd"},
        {"do": "image", "name": ["host"]},
        {"do": "spawn", "sandbox": {}, "argv": 1},
    ]
    for header in requests:
        answer = _answer(server.url, frame(Kind.MESSAGE, 7, pack_message(header)))
        if answer:  # otherwise the server has closed the connection
            kind, number, payload = parse_frame(answer)
            assert (kind, number) == (Kind.MESSAGE, 7), header
            assert "error" in parse_message(payload)[0], header


def test_a_client_that_sends_more_than_its_credit_is_dropped(server: ServerProcess) -> None:
    with BaseSandbox.open("host", server.kind) as sandbox:
        values = _spec(sandbox)
    spawn = {
        "do": "spawn",
        "sandbox": 1,
        "process": 5,
        "argv": ["sleep", "60"],
        "cwd": "/",
        "env": None,
        "targets": [0],
        "fds": [["read", 1, 0]],
    }
    opened = pack_message({"do": "open", "sandbox": 1, "spec": values})
    data = [frame(Kind.DATA, 1, b"x" * 65536)] * (2 * WINDOW // 65536)

    async def talk() -> object:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.ws_connect(f"{server.url}/sandboxes") as socket,
        ):
            await socket.receive_bytes()
            await socket.send_bytes(frame(Kind.MESSAGE, 1, opened))
            await socket.receive_bytes()
            with suppress(ConnectionError):  # the server need not wait for the last ones
                for each in (frame(Kind.MESSAGE, 2, pack_message(spawn)), *data):
                    await socket.send_bytes(each)
            while (message := await socket.receive(timeout=20)).type is aiohttp.WSMsgType.BINARY:
                pass
            return message.type

    assert asyncio.run(talk()) in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)


def test_each_token_is_a_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("first\nsecond\n")
    os.chmod(tokens, 0o600)
    with serving_sandboxes(f"--token-file={tokens}", "--limit=sandboxes=1") as server:
        monkeypatch.setenv("INTERCODE_REMOTE_TOKEN", "first")
        with BaseSandbox.open("host", server.kind) as one:
            other = server.kind.replace("127.0.0.1", "localhost")
            monkeypatch.setenv("INTERCODE_REMOTE_TOKEN", "second")
            with BaseSandbox.open("host", other) as two:
                assert one.run("true").ok and two.run("true").ok


def test_a_hostile_server_is_an_error_of_the_sandbox() -> None:
    """A server that sends what the protocol does not allow costs a sandbox, and no more."""
    header = {"version": VERSION, "tier": "x", "machine": "y"}
    listener = socket.create_server(("127.0.0.1", 0))
    replies = {
        "lies": frame(Kind.MESSAGE, 1, pack_message({"env": 5})),
        "unknown": frame(Kind.MESSAGE, 77, pack_message({})),
        "part": frame(Kind.PART, 77, b"x"),
        "broken": frame(Kind.MESSAGE, 1, b"\0\0"),
        "long": b"x" * (MAX_FRAME + 1),
    }

    async def handle(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        await socket.send_bytes(pack_message(header))
        await socket.receive()
        await socket.send_bytes(replies[request.match_info["case"]])
        await socket.receive()
        return socket

    async def serve() -> None:
        application = web.Application()
        application.router.add_get("/{case}/sandboxes", handle)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.SockSite(runner, listener).start()
        await asyncio.Event().wait()

    threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    for case in replies:
        with pytest.raises(SandboxError, match=address) as caught:
            BaseSandbox.open("host", f"remote:http://{address}/{case}")
        assert not isinstance(caught.value, SandboxUnavailableError), case
