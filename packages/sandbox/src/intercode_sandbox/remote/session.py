"""One client's connection to a server of sandboxes: reads its frames and answers its requests."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import re
import struct
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from aiohttp import WSMsgType, web

from intercode_sandbox import open_sandbox, tier_of
from intercode_sandbox.clock import SYSTEM_CLOCK, Clock
from intercode_sandbox.contract import SCRIPT_FD, BaseSandbox, SandboxSpec
from intercode_sandbox.errors import (
    InterCodeError,
    SandboxLostError,
    SandboxUnavailableError,
    UsageError,
)
from intercode_sandbox.images.cache.staging import staged_upper_layer
from intercode_sandbox.remote.bounds import Bounds, Client, Store
from intercode_sandbox.remote.connection_end import ConnectionEnd
from intercode_sandbox.remote.files import unpack_files
from intercode_sandbox.remote.protocol import (
    MAX_BODY,
    VERSION,
    Kind,
    ProtocolError,
    error_values,
    frame,
    image_values,
    list_value,
    number_value,
    object_value,
    pack_message,
    parse_frame,
    parse_message,
    parse_spec,
    text_value,
)
from intercode_sandbox.remote.relay import Group
from intercode_sandbox.remote.served import Arguments, ServedSandbox

_WAIT_SECONDS = 30.0  # for a place, if the client has as many sandboxes as it may have
_CHECK_SECONDS = 1.0
_THREADS = 8
_MAX_REQUESTS = 1024  # at one time
_MAX_UNFINISHED = 2 * MAX_BODY  # bytes of requests, above which no more are read
_MAX_WAITING = 64 << 20  # bytes that a client has not read, above which requests wait
_MAX_QUEUED = 1 << 30  # and above which the connection ends
_PAUSE_SECONDS = 0.05
_IDENTIFIER = re.compile("[0-9a-f]{32}")  # of a detached sandbox
_log = logging.getLogger("intercode.remote")
T = TypeVar("T")


class ClientSession:
    """The sandboxes of one connection. They end with it.

    ``backend``: the local back end, as in ``open_sandbox``. ``abort`` ends the connection at once.
    ``clock`` measures idleness and age.
    """

    def __init__(
        self,
        socket: web.WebSocketResponse,
        client: Client,
        bounds: Bounds,
        store: Store,
        backend: str,
        abort: Callable[[], None],
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._clock = clock
        self._socket, self._client, self._bounds, self._store = socket, client, bounds, store
        self._backend = backend
        self._sandboxes: dict[int, ServedSandbox] = {}
        self._reserved: set[int] = set()
        self._unwanted: set[int] = set()  # of those, the ones that were closed before they opened
        self._tasks: set[asyncio.Task[None]] = set()
        self._end = ConnectionEnd(False, _MAX_QUEUED, abort)
        self._relay = self._end.relay
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="intercode-serve")

    async def run(self) -> None:
        """Serve the client until it closes the connection or breaks the protocol."""
        tier = await self._in_thread(lambda: tier_of(self._backend))
        greeting = {"version": VERSION, "tier": tier, "machine": platform.machine()}
        await self._socket.send_bytes(pack_message(greeting))
        helpers = [
            asyncio.ensure_future(self._end.write_frames(self._socket)),
            asyncio.ensure_future(self._end_idle()),
        ]
        try:
            async for message in self._socket:
                if message.type is not WSMsgType.BINARY:
                    raise ProtocolError("a message that is not binary")
                await self._receive(message.data)
                while self._client.unfinished > _MAX_UNFINISHED:
                    await self._clock.wait(_PAUSE_SECONDS)
        except ProtocolError as e:
            await self._socket.close(code=1002, message=str(e).encode()[:100])
        finally:
            for helper in helpers:
                helper.cancel()
            await self._close()

    async def _close(self) -> None:
        await asyncio.sleep(0)  # the last requests begin: only then they close what they were given
        for task in self._tasks:
            task.cancel()
        for served in list(self._sandboxes.values()):
            self._forget(served)
        self._relay.close()
        # open requests that still run close their sandboxes themselves
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)

    # -------------------------------------------------------------------- frames
    async def _receive(self, data: bytes) -> None:
        kind, number, payload = parse_frame(data)
        if kind in (Kind.PART, Kind.MESSAGE):
            message = self._end.receive_part(kind, number, payload)
            if message is not None:
                await self._receive_request(number, message)
        elif kind is Kind.LOST:
            raise ProtocolError("a frame that only a server sends")
        else:
            served = self._sandboxes.get(self._relay.receive(kind, number, payload))
            if served is not None:
                served.last_used = self._clock.now()

    async def _receive_request(self, number: int, message: bytearray) -> None:
        size, (arguments, body) = len(message), parse_message(message)
        operation = text_value(arguments.pop("do", None))
        if len(self._tasks) >= _MAX_REQUESTS:
            raise ProtocolError("too many requests at one time")
        served = self._sandboxes.get(number_value(arguments.get("sandbox", 0)))
        if served is not None:
            served.last_used = self._clock.now()
        if operation == "mark":
            with suppress(InterCodeError):
                if served is not None:
                    await served.mark(number_value(arguments.get("mark")))
            return
        work = self._work(operation, arguments, body, served)
        task = asyncio.ensure_future(self._answer(number, work))
        self._tasks.add(task)
        self._client.unfinished += size
        task.add_done_callback(lambda done: self._finish(done, size))

    def _finish(self, task: asyncio.Task[None], size: int) -> None:
        self._tasks.discard(task)
        self._client.unfinished -= size

    def _work(
        self, operation: str, arguments: Arguments, body: bytes, served: ServedSandbox | None
    ) -> Awaitable[tuple[Arguments, bytes]]:
        """Return the work for a request. Streams of programs begin here, because data for them may
        follow the request at once; and so do ``attach`` and ``detach``, for other requests."""
        if operation in ("image", "has_layer"):
            return self._resolve(operation, arguments)
        if operation == "open":
            return self._open(arguments, body)
        if operation == "attach":
            return self._attach(arguments)
        if served is None:
            self._unwanted |= {int(arguments.get("sandbox", 0))} & self._reserved
            return _raise(SandboxLostError("there is no such sandbox any more"))
        if "source" in arguments:
            arguments["source"] = self._sandboxes.get(number_value(arguments["source"]))
            if arguments["source"] is None:
                return _raise(SandboxLostError("there is no sandbox with these files any more"))
        if operation == "spawn":
            group = Group(served.number)
            try:
                fds, _ = self._relay.create(arguments.get("fds"), body, group)
            except OSError as e:
                return _raise(e)
            return self._spawn(served, arguments, fds, group)
        special = {
            "fork": self._fork,
            "close": self._close_sandbox,
            "detach": self._detach,
            "capture": self._capture,
        }
        if operation in special:
            return special[operation](served, arguments)
        return self._perform(served, operation, arguments, body)

    async def _answer(self, number: int, work: Awaitable[tuple[Arguments, bytes]]) -> None:
        try:
            header, body = await work
        except ProtocolError as e:
            header, body = {"error": error_values(UsageError(str(e)))}, b""
        except Exception as e:
            if not isinstance(e, (InterCodeError, OSError, ValueError)):
                _log.exception("a request failed")
            header, body = {"error": error_values(e)}, b""
        if number:
            self._end.send_message(number, pack_message(header, body))

    def _in_thread(self, work: Callable[[], T]) -> Awaitable[T]:
        return asyncio.get_running_loop().run_in_executor(self._threads, work)

    # ------------------------------------------------------------------ requests
    async def _resolve(self, operation: str, arguments: Arguments) -> tuple[Arguments, bytes]:
        if operation == "has_layer":
            reference = text_value(arguments.get("reference"))
            has = await self._in_thread(lambda: self._store.has_layer(self._client, reference))
            return {"value": has}, b""
        name = text_value(arguments.get("name"))
        image = await self._in_thread(lambda: self._store.image(name))
        return image_values(image), b""

    def _parse_spec(self, values: Any) -> SandboxSpec:
        if not isinstance(values, dict):
            raise ProtocolError("a specification that is not an object")
        digest = values.get("digest")
        image = self._store.image(
            text_value(values.get("image")), None if digest is None else text_value(digest)
        )
        references = list_value(values.get("layers"))
        layers = tuple(self._store.layer(self._client, each) for each in references)
        return self._bounds.check(parse_spec(values, image, layers))

    async def _open(self, arguments: Arguments, body: bytes) -> tuple[Arguments, bytes]:
        number = number_value(arguments.get("sandbox"), 2**32 - 1)
        spec = await self._in_thread(lambda: self._parse_spec(arguments.get("spec")))
        layers = list_value(object_value(arguments.get("spec")).get("layers"))
        if arguments.get("with_files") is True:
            return await self._add(number, lambda: self._open_with_files(spec, body), layers)
        return await self._add(number, lambda: open_sandbox(spec, self._backend), layers)

    def _open_with_files(self, spec: SandboxSpec, body: bytes) -> BaseSandbox:
        with self._client.stage, staged_upper_layer() as directory:
            unpack_files(body, directory, spec.limits.inodes)
            return open_sandbox(spec, self._backend, directory)

    async def _add(
        self, number: int, make: Callable[[], BaseSandbox], layers: list[str]
    ) -> tuple[Arguments, bytes]:
        """Open a sandbox once the client has a place for it. ``layers``: their references."""
        if number in self._sandboxes or number in self._reserved:
            raise ProtocolError("a number that is in use")
        self._reserved.add(number)
        try:
            await self._wait_for_room()
            sandbox = opening = None
            try:
                opening = self._threads.submit(make)
                sandbox = await asyncio.shield(asyncio.wrap_future(opening))
            finally:
                if sandbox is None:
                    self._client.sandboxes -= 1
                    if opening is not None:
                        opening.add_done_callback(_close_result)
        finally:
            self._reserved.discard(number)
        if number in self._unwanted:
            self._unwanted.discard(number)
            self._client.sandboxes -= 1
            await self._in_thread(sandbox.close)
            raise SandboxLostError("the client closed the sandbox before it was open")
        served = ServedSandbox(number, sandbox, self._client, self._clock, layers)
        self._sandboxes[number] = served
        return served.describe(), b""

    async def _wait_for_room(self) -> None:
        deadline = self._clock.now() + _WAIT_SECONDS
        while self._client.sandboxes >= self._bounds.sandboxes:
            if self._clock.now() > deadline:
                raise SandboxUnavailableError(
                    f"this client already has {self._bounds.sandboxes} sandboxes, the most that "
                    "the server allows (--limit sandboxes): play fewer episodes at once"
                )
            await self._clock.wait(_PAUSE_SECONDS)
        self._client.sandboxes += 1

    async def _fork(self, served: ServedSandbox, arguments: Arguments) -> tuple[Arguments, bytes]:
        new = number_value(arguments.get("new"), 2**32 - 1)
        async with served.lock:
            return await self._add(new, served.sandbox.fork, served.layers)

    async def _spawn(
        self,
        served: ServedSandbox,
        arguments: Arguments,
        fds: list[int],
        group: Group,
    ) -> tuple[Arguments, bytes]:
        unused = list(fds)
        try:
            async with served.lock:
                await self._open_script(served, arguments, fds)
                starting = self._in_thread(lambda: served.spawn(arguments, fds, group))
                unused.clear()
                process = await asyncio.shield(starting)  # closes them even if the client leaves
        finally:
            for fd in unused:
                os.close(fd)
        number = arguments["process"]
        if self._sandboxes.get(group.sandbox) is not served:  # a reader would never be removed
            served.processes.pop(number, None)
            raise SandboxLostError("the sandbox was closed while a program started")
        asyncio.get_running_loop().add_reader(
            process.fileno(), self._process_ended, served, number, process.fileno()
        )
        return {"value": process.pid}, b""

    async def _open_script(
        self, served: ServedSandbox, arguments: Arguments, fds: list[int]
    ) -> None:
        """Let the stream of a program's script lead to the pipe that the sandbox has for it."""
        targets = list_value(arguments.get("targets"))[: len(fds)]
        if SCRIPT_FD not in targets or "script" not in served.sandbox.capabilities:
            return
        at = targets.index(SCRIPT_FD)
        kind, number, _ = arguments["fds"][at]
        if kind == "read":
            opening = self._threads.submit(served.sandbox.open_script)
            try:
                ends = await asyncio.wrap_future(opening)
            except asyncio.CancelledError:
                opening.add_done_callback(_close_ends)
                raise
            self._relay.replace_pipe(number, fds[at], ends)

    def _process_ended(self, served: ServedSandbox, number: int, fd: int) -> None:
        asyncio.get_running_loop().remove_reader(fd)
        task = asyncio.ensure_future(self._report_exit(served, number))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _report_exit(self, served: ServedSandbox, number: int) -> None:
        found = served.processes.pop(number, None)
        if found is None:  # the sandbox was closed
            return
        process, group = found
        try:
            end = struct.pack("i", await self._in_thread(lambda: process.wait(0)))
            report = frame(Kind.END, number, end)
        except Exception as e:
            report = frame(Kind.LOST, served.number, pack_message(error_values(e)))
        self._relay.after_output(group, lambda: self._end.send(report))

    async def _perform(
        self, served: ServedSandbox, operation: str, arguments: Arguments, body: bytes
    ) -> tuple[Arguments, bytes]:
        async with served.lock:
            while self._end.queued > _MAX_WAITING:  # the client has to read its answers first
                await self._clock.wait(_PAUSE_SECONDS)
            return {}, await self._in_thread(lambda: served.perform(operation, arguments, body))

    async def _capture(
        self, served: ServedSandbox, arguments: Arguments
    ) -> tuple[Arguments, bytes]:
        """Keep the changes of a sandbox as a layer."""
        name = text_value(arguments.get("reference"))
        async with served.lock:
            await self._in_thread(lambda: self._store.capture(self._client, name, served.sandbox))
        return {}, b""

    # ----------------------------------------------------------------------- end
    async def _close_sandbox(
        self, served: ServedSandbox, arguments: Arguments
    ) -> tuple[Arguments, bytes]:
        async with served.lock:
            closed = self._forget(served, wait=bool(arguments.get("wait")))
            if arguments.get("wait"):
                await closed
        return {}, b""

    def _forget(self, served: ServedSandbox, wait: bool = False) -> Awaitable[None]:
        """Close a sandbox in a thread, and its streams."""
        if served.number in self._sandboxes:
            self._client.sandboxes -= 1
        self._leave(served)
        return self._in_thread(lambda: served.close(wait))

    def _leave(self, served: ServedSandbox) -> None:
        """Close the streams of a sandbox, which is no longer one of this connection."""
        self._sandboxes.pop(served.number, None)
        loop = asyncio.get_running_loop()
        for process, _ in list(served.processes.values()):  # a thread may add one
            loop.remove_reader(process.fileno())
        served.detach()
        self._relay.close_sandbox(served.number)

    def _detach(
        self, served: ServedSandbox, arguments: Arguments
    ) -> Awaitable[tuple[Arguments, bytes]]:
        """Keep a sandbox under the id that its client has chosen, for a later connection, until it
        was idle for too long. Requests that arrive later find no sandbox."""
        identifier, client, clock = text_value(arguments.get("detached")), self._client, self._clock
        if not _IDENTIFIER.fullmatch(identifier) or identifier in client.detached:
            return _raise(UsageError("an id that a detached sandbox cannot have"))
        self._leave(served)
        seconds = min(self._bounds.idle, served.began + self._bounds.lifetime - clock.now())

        async def expire() -> None:
            await clock.wait(max(0.0, seconds))
            del client.detached[identifier]
            client.sandboxes -= 1
            await asyncio.to_thread(served.close)

        async def finish() -> tuple[Arguments, bytes]:
            async with served.lock:  # after the requests that arrived before
                await self._in_thread(served.close_checkpoint)
            return {}, b""

        client.detached[identifier] = served
        served.expire(expire())
        return finish()

    def _attach(self, arguments: Arguments) -> Awaitable[tuple[Arguments, bytes]]:
        number = number_value(arguments.get("sandbox"), 2**32 - 1)
        if number in self._sandboxes or number in self._reserved:
            return _raise(UsageError("a sandbox with this number exists already"))
        identifier = text_value(arguments.get("detached"))
        served: ServedSandbox | None = self._client.detached.pop(identifier, None)
        if served is None:
            reason = "it has ended, or is attached elsewhere"
            return _raise(SandboxLostError(f"no sandbox is detached with this id: {reason}"))
        served.attach(number)
        served.last_used = self._clock.now()
        self._sandboxes[number] = served
        return _give(served.describe_fully())

    async def _end_idle(self) -> None:
        """End sandboxes that are idle or too old."""
        while True:
            await self._clock.wait(_CHECK_SECONDS)
            now = self._clock.now()
            for served in list(self._sandboxes.values()):
                reason = ""
                if now - served.last_used > self._bounds.idle:
                    reason = f"there was no request for {self._bounds.idle:g} s"
                elif now - served.began > self._bounds.lifetime:
                    reason = f"it is older than {self._bounds.lifetime:g} s"
                if reason:
                    self._forget(served)
                    error = error_values(
                        SandboxLostError(f"the server ended the sandbox: {reason}")
                    )
                    self._end.send(frame(Kind.LOST, served.number, pack_message(error)))


async def _raise(error: Exception) -> tuple[Arguments, bytes]:
    raise error


async def _give(answer: Arguments) -> tuple[Arguments, bytes]:
    return answer, b""


def _close_ends(done: Future[tuple[int, int]]) -> None:
    """Close a pipe for which nobody waits any more."""
    if not done.cancelled() and done.exception() is None:
        for fd in done.result():
            os.close(fd)


def _close_result(done: Future[BaseSandbox]) -> None:
    """Close a sandbox for which nobody waits any more."""
    if not done.cancelled() and done.exception() is None:
        done.result().close()
