"""What a client of remote sandboxes, or a program in one, cannot make a server or a client store or
do."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import tarfile
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientWebSocketResponse, WSMessage, WSMsgType

from intercode_sandbox import Limits, SandboxSpec, event_loop, resolve_image
from intercode_sandbox.clock import SYSTEM_CLOCK, Clock
from intercode_sandbox.contract import SCRIPT_FD, BaseSandbox
from intercode_sandbox.errors import (
    ConfigError,
    SandboxError,
    SandboxLostError,
    SandboxUnavailableError,
    UsageError,
)
from intercode_sandbox.platforms.paths import cache_root
from intercode_sandbox.remote import bounds, connection, server, session
from intercode_sandbox.remote.bounds import Bounds, Client, Store
from intercode_sandbox.remote.connection import Connection, connect
from intercode_sandbox.remote.operations import OPERATIONS
from intercode_sandbox.remote.protocol import (
    MAX_BODY,
    Kind,
    ProtocolError,
    error_values,
    frame,
    pack_message,
    parse_error,
    parse_frame,
    parse_message,
    parse_spec,
    spec_values,
)
from intercode_sandbox.remote.relay import Group, Relay
from intercode_sandbox.remote.served import ServedSandbox
from intercode_sandbox.types import Layer
from support.fake_clock import FakeClock
from support.sandbox_server import ServerProcess

pytestmark = [pytest.mark.sandbox, pytest.mark.namespace_only]


def test_a_long_list_of_changes_does_not_end_the_connection(remote: ServerProcess) -> None:
    make = "for i in range(6000): open('/tmp/' + chr(233) * 120 + str(i), 'w').close()"
    with BaseSandbox.open("host", remote.kind) as sandbox:
        assert sandbox.run(["python3", "-c", make]).ok
        assert len(sandbox.changes(digests=False)) >= 6000
        assert len(sandbox.changed_paths()) >= 6000
        assert sandbox.run(["touch", os.fsdecode(b"/tmp/\xff")]).ok
        assert os.fsdecode(b"/tmp/\xff") in sandbox.changes()


def test_a_text_with_nul_is_the_error_of_a_local_sandbox(remote: ServerProcess) -> None:
    with BaseSandbox.open("host", remote.kind) as sandbox:
        for argv in (["echo", "a\0b"], ["echo", "x" * 5_000_000]):
            with pytest.raises(OSError) as caught:
                sandbox.spawn(argv)
            assert caught.value.errno in (errno.EINVAL, errno.E2BIG)
        with pytest.raises(OSError):
            sandbox.read("/a\0b")
        assert sandbox.run("echo again").output == "again\n"


def test_a_sparse_file_in_an_archive_is_refused(remote: ServerProcess, tmp_path: Path) -> None:
    archive, entry = tmp_path / "layer.tar", tarfile.TarInfo("holes")
    entry.size = 1
    entry.pax_headers = {"GNU.sparse.map": "0,1", "GNU.sparse.size": str(8 << 20)}
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as out:
        out.addfile(entry, BytesIO(b"x"))
    with pytest.raises(SandboxError, match="sparse file"):
        connect(remote.url).upload(hashlib.sha256(archive.read_bytes()).hexdigest(), archive)


def test_limits_of_zero_are_refused_because_they_are_none() -> None:
    image = resolve_image("host")
    values = spec_values(SandboxSpec(image), [])
    for name in ("disk", "inodes", "memory", "processes", "open_files"):
        with pytest.raises(UsageError, match=f"limit {name} "):
            parse_spec({**values, "limits": {name: 0}}, image, ())
    for wrong in ({"limits": {"patience": 1}}, {"limits": []}, {"env": []}):
        with pytest.raises(ProtocolError):
            parse_spec({**values, **wrong}, image, ())
    with pytest.raises(UsageError, match="variable 'A'"):
        parse_spec({**values, "env": {"A": "\0"}}, image, ())
    with pytest.raises(UsageError, match="open_files="):
        Bounds().check(SandboxSpec(resolve_image("host"), limits=Limits(open_files=1 << 20)))
    with pytest.raises(UsageError, match=r"memory=.*\(--limit memory=SIZE\)"):
        Bounds().check(SandboxSpec(resolve_image("host"), limits=Limits(memory=8 << 30)))


def test_what_a_server_says_cannot_control_a_terminal() -> None:
    error = parse_error({"kind": "sandbox", "text": "a\x1b[2J\x9b\u202eb"}, "url")
    assert str(error).startswith(r"a\x1b[2J\x9b\u202eb")


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("changes", b"[]"),
        ("changes", b'{"etc": ["file", 0, 0, "", "", true]}'),
        ("changes", b'{"/etc": ["file", 0, 0, "", "", 1]}'),
        ("changes", b'{"/etc": ["pipe", 0, 0, "", "", true]}'),
        ("changes", b'{"/etc": ["file"]}'),
        ("changed_paths", b'["etc"]'),
        ("changed_paths", b"[[]]"),
        ("file_info", b"null"),
        ("file_info", b'["file", 0, 0, "now", ""]'),
        ("list_directory", b'{"a\\u0000": ["file", 0, 0, 1.5, ""]}'),
        ("limit_exceeded", b'"patience"'),
        ("processes", b"[7]"),
        ("usage", b'[0, 0, 0, 0, "1"]'),
        ("usage", b"[0, 0, 0, 0]"),
        ("descendants", b"[-1]"),
        ("write", b"1"),
        ("write", b""),
        ("write", b"[" * 100_000),
    ],
)
def test_a_result_of_another_type_is_refused(operation: str, body: bytes) -> None:
    with pytest.raises(ProtocolError):
        OPERATIONS[operation].unpack(body)


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("read", None),
        ("read", ["/a\0b", 5]),
        ("read", ["/a", MAX_BODY + 1]),
        ("write", ["/a", 0o10000]),
        ("signal", [1]),
        ("signal", [1, 65]),
        ("signal", [True, 9]),
        ("file_info", ["/a", 1]),
        ("kill_since", [0, [-1]]),
        ("kill_since", [0, {}]),
    ],
)
def test_arguments_of_another_type_are_refused(operation: str, arguments: object) -> None:
    sandbox = SimpleNamespace()  # no method of it is called
    with pytest.raises(ProtocolError):
        OPERATIONS[operation].perform(sandbox, arguments, b"")  # type: ignore[arg-type]


# ---------------------------------------------------------------------- the relay
def test_descriptors_of_which_one_cannot_be_carried_are_not_copied() -> None:
    relay = Relay(lambda data: None, passes_descriptors=True, max_channels=10)
    read, write = os.pipe()
    device = os.open("/dev/null", os.O_RDONLY)
    try:
        with pytest.raises(OSError, match="only pipes, sockets and files"):
            relay.describe([write, device])
        os.close(write)
        os.set_blocking(read, False)
        assert os.read(read, 1) == b"", "a copy keeps the pipe open"
    finally:
        os.close(read)
        os.close(device)


def test_what_has_arrived_for_a_program_is_moved_to_another_pipe() -> None:
    async def carry(ends_before: bool) -> bytes:
        relay = Relay(lambda data: None, passes_descriptors=False, max_channels=10)
        (reader,), _ = relay.create([["read", 1, 0]], b"", Group(1))
        relay.receive(Kind.DATA, 1, b"echo ")
        if ends_before:
            relay.receive(Kind.END, 1, b"")
        relay.replace_pipe(1, reader, os.pipe())
        if not ends_before:
            relay.receive(Kind.DATA, 1, b"1")
            relay.receive(Kind.END, 1, b"")
        with open(reader, "rb") as file:
            return file.read()

    assert asyncio.run(carry(ends_before=True)) == b"echo "
    assert asyncio.run(carry(ends_before=False)) == b"echo 1"


def test_descriptors_that_a_client_sends_are_bounded_and_closed() -> None:
    async def talk(payload: bytes, times: int) -> None:
        relay = Relay(lambda data: None, passes_descriptors=False, max_channels=5000)
        (other,), _ = relay.create([["socket", 1, 0]], b"", Group(1))
        try:
            for _ in range(times):
                relay.receive(Kind.PASSING, 1, payload)
        finally:
            relay.close()
            os.close(other)

    def opened() -> int:
        """Return how many files in memory this process has open."""
        fds = [path for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
        return sum("memfd:" in os.fspath(_target(path)) for path in fds)

    before = opened()
    asyncio.run(talk(_passing(1, b"x"), 1))
    assert opened() == before
    for payload, times in (
        (_passing(1, b""), 1),
        (_passing(17, b"x"), 1),
        (_passing(16, b"x" * 60_000), 2000),  # more data, or descriptors, than may wait
    ):
        with pytest.raises(ProtocolError):
            asyncio.run(talk(payload, times))
        assert opened() == before


def _target(link: Path) -> Path:
    with suppress(OSError):  # the descriptor that lists the directory is closed by now
        return link.readlink()
    return link


def _passing(count: int, data: bytes) -> bytes:
    return pack_message({"fds": [["file", 0, 0]] * count}, data)


# ----------------------------------------------------------------------- sessions
def _session(
    socket: Any, client: Client, clock: Clock = SYSTEM_CLOCK, **limits: Any
) -> session.ClientSession:
    bounds = Bounds(**{"sandboxes": 1, **limits})
    return session.ClientSession(
        socket, client, bounds, Store(bounds), "namespace", lambda: None, clock
    )


def test_idle_and_old_sandboxes_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "tier_of", lambda kind: kind)
    use = WSMessage(
        WSMsgType.BINARY,
        frame(Kind.MESSAGE, 0, pack_message({"do": "mark", "sandbox": 1, "mark": 1})),
        None,
    )

    async def serve() -> None:
        clock, client = FakeClock(), Client("key", sandboxes=2)
        arriving, sent = asyncio.Queue[WSMessage | None](), asyncio.Queue[bytes]()

        class Socket:
            send_bytes = staticmethod(sent.put)

            async def __aiter__(self) -> AsyncIterator[WSMessage]:
                while (message := await arriving.get()) is not None:
                    yield message
                    arriving.task_done()

        async def lost() -> tuple[int, str]:
            kind, number, payload = parse_frame(await sent.get())
            assert kind is Kind.LOST
            return number, str(parse_error(parse_message(payload)[0], "http://server"))

        connection = _session(Socket(), client, clock, sandboxes=2, idle=100.0, lifetime=250.0)
        files = SimpleNamespace(mark=lambda: 1, close=lambda *_: None)
        for number in (1, 2):
            served = ServedSandbox(number, files, client, clock)  # type: ignore[arg-type]
            connection._sandboxes[number] = served
        running = asyncio.ensure_future(connection.run())
        await sent.get()  # the greeting
        for seconds, alive in ((90, {1, 2}), (90, {1}), (60, {1})):
            await clock.advance(seconds)
            assert set(connection._sandboxes) == alive
            await arriving.put(use)
            await arriving.join()
        number, why = await lost()
        assert number == 2 and "there was no request for 100 s" in why
        await clock.advance(20)
        number, why = await lost()
        assert number == 1 and "it is older than 250 s" in why
        assert not connection._sandboxes and client.sandboxes == 0
        await arriving.put(None)
        await running

    asyncio.run(serve())


def test_requests_that_arrive_as_the_connection_ends_leave_nothing_open() -> None:
    async def serve() -> None:
        client, closed = Client("key", sandboxes=1), list[bool]()
        connection = _session(None, client)
        served = ServedSandbox(1, SimpleNamespace(close=closed.append), client)  # type: ignore[arg-type]
        connection._sandboxes[1] = served
        begun = list[str]()

        async def work() -> Any:
            begun.append("yes")
            await asyncio.Event().wait()

        connection._tasks.add(asyncio.ensure_future(connection._answer(1, work())))
        await connection._close()
        assert begun and closed and client.sandboxes == 0

    asyncio.run(serve())


IDENTIFIER = "0123456789abcdef" * 2


def test_a_request_behind_a_detach_finds_no_sandbox_and_one_before_it_ends_first() -> None:
    async def serve() -> None:
        client, closed = Client("key", sandboxes=1), list[str]()
        connection = _session(None, client)
        served = ServedSandbox(1, SimpleNamespace(), client)  # type: ignore[arg-type]
        served.checkpoint = SimpleNamespace(close=lambda: closed.append("checkpoint"))
        connection._sandboxes[1] = served
        arguments = {"sandbox": 1, "detached": IDENTIFIER}
        for wrong in ("short", IDENTIFIER.upper()):
            with pytest.raises(UsageError, match="an id that a detached sandbox cannot have"):
                await connection._work("detach", {"detached": wrong}, b"", served)
        async with served.lock:  # as an earlier request does
            detached = asyncio.ensure_future(connection._work("detach", arguments, b"", served))
            with pytest.raises(SandboxLostError, match="there is no such sandbox"):
                await connection._work("write", {}, b"", connection._sandboxes.get(1))
            assert not detached.done() and not closed
        await detached
        assert closed == ["checkpoint"] and served.checkpoint is None
        assert served._expiry is not None
        served._expiry.cancel()

    asyncio.run(serve())


def test_a_detached_sandbox_ends_after_its_idle_time() -> None:
    async def serve() -> None:
        clock, client, closed = FakeClock(), Client("key", sandboxes=1), list[bool]()
        connection = _session(None, client, clock, idle=100.0)
        files = SimpleNamespace(close=closed.append)
        served = ServedSandbox(1, files, client, clock)  # type: ignore[arg-type]
        connection._sandboxes[1] = served
        await connection._detach(served, {"detached": IDENTIFIER})
        later = asyncio.ensure_future(clock.wait(1000))  # so that the time can be moved
        await clock.advance(90)
        assert list(client.detached) == [IDENTIFIER] and client.sandboxes == 1
        await clock.advance(20)
        assert served._expiry is not None
        await served._expiry
        assert closed and not client.detached and client.sandboxes == 0
        later.cancel()

    asyncio.run(serve())


def test_the_layers_that_a_client_makes_are_counted() -> None:
    client, store = Client("key"), Store(Bounds(uploads=1 << 20))
    reference = f"capture:{os.urandom(16).hex()}"
    with BaseSandbox.open("host", "namespace") as sandbox:
        sandbox.write("/tmp/large", b"x" * (2 << 20))
        for _ in range(2):
            with pytest.raises(UsageError, match="--limit uploads"):
                store.capture(client, reference, sandbox)
            assert not store.has_layer(client, reference)


def test_the_first_layer_of_a_name_stays_its_clients_own(monkeypatch: pytest.MonkeyPatch) -> None:
    client, store = Client("key"), Store(Bounds())
    reference = f"capture:{os.urandom(16).hex()}"
    with BaseSandbox.open("host", "namespace") as sandbox:
        for text in (b"first", b"second"):
            sandbox.write("/tmp/file", text)
            with client.stage:  # other files are sent at the same time
                store.capture(client, reference, sandbox)
    assert store.has_layer(client, reference)
    assert (store.layer(client, reference).root / "tmp" / "file").read_bytes() == b"first"
    monkeypatch.setattr(bounds, "step_path", lambda name: pytest.fail(f"{name} is marked"))
    assert not store.has_layer(Client("other"), reference)
    with pytest.raises(UsageError, match="no longer has a layer"):
        store.layer(Client("other"), reference)


def test_a_layer_is_looked_up_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look-up waits while images are removed; the event loop serves all clients."""
    monkeypatch.setattr(Store, "has_layer", lambda *_: threading.current_thread().name)

    async def look_up() -> object:
        found, _ = await _session(None, Client("key"))._resolve("has_layer", {"reference": "any"})
        return found["value"]

    assert str(asyncio.run(look_up())).startswith("intercode-serve")


def test_requests_that_wait_for_a_sandbox_are_not_read_without_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "_MAX_UNFINISHED", 2000)
    monkeypatch.setattr(session, "tier_of", lambda kind: kind)
    request = {"do": "write", "sandbox": 1, "path": "/tmp/f", "mode": 0o644}
    message = frame(Kind.MESSAGE, 0, pack_message(request, b"x" * 900))
    count, read = 20, 0

    async def messages() -> AsyncIterator[WSMessage]:
        nonlocal read
        for _ in range(count):
            read += 1
            yield WSMessage(WSMsgType.BINARY, message, None)
        while client.unfinished:  # the connection ends after the last answer
            await asyncio.sleep(0)

    class Socket:
        async def send_bytes(self, _: bytes) -> None: ...
        def __aiter__(self) -> AsyncIterator[WSMessage]:
            return messages()

    client, clock = Client("key", sandboxes=1), FakeClock(jumps=True)

    async def serve() -> None:
        connection = _session(Socket(), client, clock)
        files = SimpleNamespace(write=lambda *_: None, close=lambda *_: None)
        served = connection._sandboxes[1] = ServedSandbox(1, files, client)  # type: ignore[arg-type]
        await served.lock.acquire()
        running = asyncio.ensure_future(connection.run())
        while clock.now() < 3000 or client.unfinished <= 2000:
            await asyncio.sleep(0)
        assert read < 6, "the first ones wait for the sandbox, and the others for them"
        served.lock.release()
        await asyncio.wait_for(running, 20)
        assert read == count and client.unfinished == 0

    asyncio.run(asyncio.wait_for(serve(), 30))


def test_a_program_that_starts_while_its_sandbox_ends_leaves_no_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its descriptor is closed with it. If a reader stayed, the end of a program of another client
    that gets the same number would not be noticed."""
    monkeypatch.setattr(session, "_THREADS", 1)
    begun, go, closing = threading.Event(), threading.Event(), threading.Event()
    status, end = os.pipe()

    def spawn(*_: object, **__: object) -> SimpleNamespace:
        begun.set()
        assert go.wait(30)
        return SimpleNamespace(pid=1, fileno=lambda: status)

    async def serve() -> bool:
        client = Client("key", sandboxes=1)
        connection = _session(None, client)
        sandbox = SimpleNamespace(spawn=spawn, close=lambda *_: None)
        served = connection._sandboxes[1] = ServedSandbox(1, sandbox, client)  # type: ignore[arg-type]
        arguments = {"process": 1, "argv": ["true"], "cwd": "/", "targets": []}
        starting = asyncio.ensure_future(connection._spawn(served, arguments, [], Group(1)))
        assert await asyncio.to_thread(begun.wait, 30)
        connection._threads.submit(closing.wait, 30)  # other requests are before the end
        closed = connection._forget(served)  # it is older than the server allows
        go.set()
        with pytest.raises(SandboxLostError, match="closed while a program started"):
            await starting
        closing.set()
        await closed
        return asyncio.get_running_loop().remove_reader(status)

    try:
        assert not asyncio.run(serve())
    finally:
        os.close(status)
        os.close(end)


@pytest.mark.parametrize("waits_for", ["lock", "script", "thread", "program"])
def test_a_client_that_leaves_while_a_program_starts_leaves_no_descriptor(
    monkeypatch: pytest.MonkeyPatch, waits_for: str
) -> None:
    monkeypatch.setattr(session, "_THREADS", 1)
    begun, go = threading.Event(), threading.Event()
    pipes = [os.pipe() for _ in range(3)]
    (reader, end), (script, script_end), (other, other_end) = pipes
    ends = os.dup(script), os.dup(other_end)

    def wait() -> None:
        begun.set()
        assert go.wait(30)

    def open_script() -> tuple[int, int]:
        if waits_for == "script":
            wait()
        return ends

    def spawn(*_: object, **__: object) -> SimpleNamespace:
        if waits_for == "program":
            wait()
        return SimpleNamespace(pid=1, fileno=lambda: -1)

    async def serve() -> None:
        client = Client("key", sandboxes=1)
        connection = _session(None, client)
        sandbox = SimpleNamespace(
            spawn=spawn, open_script=open_script, close=lambda *_: None, capabilities={"script"}
        )
        served = connection._sandboxes[1] = ServedSandbox(1, sandbox, client)  # type: ignore[arg-type]
        arguments = {"process": 1, "argv": ["true"], "cwd": "/", "targets": [SCRIPT_FD]}
        arguments["fds"] = [["read", 1, 0]]
        if waits_for == "lock":
            begun.set()
            await served.lock.acquire()
        elif waits_for == "thread":
            connection._threads.submit(wait)
        work = connection._spawn(served, arguments, [reader], Group(1))
        starting = asyncio.ensure_future(work)
        await asyncio.to_thread(begun.wait, 30)
        starting.cancel()
        with suppress(asyncio.CancelledError):
            await starting
        go.set()
        await asyncio.to_thread(connection._threads.shutdown)

    asyncio.run(serve())
    if waits_for in ("lock", "thread"):  # no script was opened
        for fd in ends:
            os.close(fd)
    os.close(script)
    os.close(other_end)
    for writer in (end, script_end):
        with pytest.raises(BrokenPipeError):
            os.write(writer, b"x")
        os.close(writer)
    os.set_blocking(other, False)
    assert os.read(other, 1) == b""
    os.close(other)


def test_an_exit_status_after_its_thread_has_given_up_is_written_to_no_other_file() -> None:
    async def receive() -> tuple[int, int]:
        relay = Relay(lambda data: None, passes_descriptors=True, max_channels=10)
        status, end = relay.describe_status()
        relay.adopt([], [end], Group(1))
        first = relay.receive(Kind.CREDIT, end[0], b"\0" * 4)
        relay.drop([end[0]])
        os.close(status)
        return first, relay.receive(Kind.END, end[0], b"\0" * 4)

    assert asyncio.run(receive()) == (1, 0)


def test_a_program_that_cannot_start_leaves_no_descriptor(remote: ServerProcess) -> None:
    opened = lambda: len(os.listdir("/proc/self/fd"))  # noqa: E731
    with BaseSandbox.open("host", remote.kind) as sandbox:
        with pytest.raises(FileNotFoundError):
            sandbox.run(["/nonexistent"])
        sandbox.run("true")
        sandbox.close(wait=True)
        before = opened()
        for _ in range(20):
            with pytest.raises(SandboxLostError):
                sandbox.run("true")
        # the connection may close descriptors of the sandbox meanwhile, but not as many
        assert opened() <= before


# --------------------------------------------------------------------------- disk
def test_copies_for_stopped_clocks_are_counted_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "cache_root", lambda: tmp_path)
    tree, left = tmp_path / "layer", tmp_path / "dated" / "clock.5"
    for folder in (tree, left):
        folder.mkdir(parents=True)
    (tree / "file").write_bytes(b"x" * 100_000)
    os.utime(left, (1e9, 1e9))
    store, client = Store(Bounds(uploads=250_000)), Client("key")
    layer = Layer(tree, "sha256:" + "1" * 64)
    for hour in (36_000, 36_000, 72_000):  # the same copy is counted once
        store._redated(client, layer, hour)
    assert {p.name for p in (tmp_path / "dated").iterdir()} == {"clock.10", "clock.20"}
    assert not left.exists()
    with pytest.raises(UsageError, match="--limit uploads"):
        store._redated(client, layer, 108_000)


def test_uploads_that_a_killed_server_left_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "cache_root", lambda: tmp_path)
    for name, age in (("left", 7200), ("running", 10)):
        directory = tmp_path / "staging" / name
        directory.mkdir(parents=True)
        (directory / "layer.tar").write_bytes(b"x")
        for path in (directory / "layer.tar", directory):
            os.utime(path, (time.time() - age,) * 2)
    server.SandboxServer([])
    assert os.listdir(tmp_path / "staging") == ["running"]


def test_a_layer_is_named_by_a_reference_only(remote: ServerProcess) -> None:
    with BaseSandbox.open("host", remote.kind) as sandbox:
        for name in ("../" * 8 + "etc", "\ud800", "archive:" + "x" * 64, "capture:../x"):
            for operation in ("has_layer", "capture"):
                with pytest.raises(UsageError, match="reference to a layer is not valid"):
                    connect(remote.url).request(operation, sandbox=sandbox.number, reference=name)
        with pytest.raises(UsageError, match="a layer that is sent"):
            sandbox.keep_changes("archive:" + "1" * 64)


def test_what_one_client_has_sent_is_no_other_clients_business(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "layer.tar"
    with tarfile.open(archive, "w") as tar:
        tar.addfile(tarfile.TarInfo("note"), BytesIO())
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    store, first, second = Store(Bounds()), Client("first"), Client("second")
    store.add_archive(first, digest, archive)
    reference = f"archive:{digest}"
    assert store.has_layer(first, reference) and not store.has_layer(second, reference)
    assert (store.layer(first, reference).root / "note").is_file()
    unknown = f"archive:{'1' * 64}"
    for client, name in ((second, reference), (second, unknown), (first, unknown)):
        with pytest.raises(SandboxError, match="was not sent to the server"):
            store.layer(client, name)
    store.add_archive(second, digest, archive)
    assert store.layer(second, reference) == store.layer(first, reference)


def test_errors_name_no_paths_of_the_server(remote: ServerProcess, tmp_path: Path) -> None:
    archive = tmp_path / "layer.tar"
    with tarfile.open(archive, "w") as tar:
        tar.addfile(tarfile.TarInfo("../outside"), BytesIO())
    name = hashlib.sha256(archive.read_bytes()).hexdigest()
    with pytest.raises(SandboxError, match=r"\(a file of the server\).*outside") as caught:
        connect(remote.url).upload(name, archive)
    assert str(cache_root()) not in str(caught.value)
    own = [cache_root() / "staging" / "a" / "b.tar", Path(server.__file__), "/sys/fs/cgroup/x"]
    own += [Path(tempfile.gettempdir(), name) for name in ("intercode-layer-x/y", "tmpabc_1234/y")]
    for path in own:
        for kind in (SandboxError, UsageError, ValueError):
            text = error_values(kind(f"'{path}': broken; see {path}, or not"))["text"]
            assert text == "'(a file of the server)': broken; see (a file of the server), or not"
    for text in ("no directory /tmp/mine/x", "/dev/shm/x: no", "/work/note"):
        assert error_values(SandboxError(text))["text"] == text


# --------------------------------------------------------------------- the client
def test_the_message_of_a_time_limit_names_it(
    remote: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, made = tmp_path / "layer.tar", connect(remote.url)
    archive.write_bytes(b"x")
    monkeypatch.setattr(connection, "UPLOAD_SECONDS", 0)
    monkeypatch.setattr(connection, "_CONNECT_SECONDS", 0)
    with pytest.raises(SandboxLostError, match="did not take a layer: no answer for 0 s"):
        made.upload("1" * 64, archive)
    with pytest.raises(SandboxLostError, match="gave no answer for 0 s"):
        made.request("image", name="host", seconds=0)
    with pytest.raises(SandboxUnavailableError, match=r"no server .* TimeoutError"):
        Connection(remote.url)


def test_a_connection_whose_end_is_interrupted_leaves_no_session(
    remote: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Connection(remote.url)

    async def end() -> bool:
        closing = asyncio.Event()

        async def close(_: object) -> None:
            closing.set()
            await asyncio.Event().wait()  # until it is cancelled

        monkeypatch.setattr(ClientWebSocketResponse, "close", close)
        first = asyncio.ensure_future(made.aclose())
        await closing.wait()
        await made.aclose()
        await first
        return made._session.closed

    assert event_loop.run_on_loop(end())
    event_loop.close_resource(made)


class _Proxy(BaseHTTPRequestHandler):
    """Answers with the status in the path, and names another address."""

    def do_GET(self) -> None:
        self.send_response(int(self.path.split("/")[1]))
        self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.mark.parametrize(
    ("status", "error", "reason"),
    [
        (302, ConfigError, "redirection"),
        (404, ConfigError, "is no server of sandboxes"),
        (502, SandboxUnavailableError, "the server behind it does not run"),
    ],
)
def test_a_client_says_what_a_proxy_answers(
    status: int, error: type[Exception], reason: str
) -> None:
    with HTTPServer(("127.0.0.1", 0), _Proxy) as listener:
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        try:
            with pytest.raises(error, match=reason):
                Connection(f"http://127.0.0.1:{listener.server_port}/{status}")
        finally:
            with suppress(OSError):
                listener.shutdown()
