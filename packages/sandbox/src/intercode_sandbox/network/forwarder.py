"""Forwards the connections of a sandbox to the hosts that its rules name.

Its sockets listen in the gateway of the sandbox; everything else happens in this process, with the
rights of the user: names are resolved here, when a connection is made, and the address that was
checked is the one that is connected to. Nothing else leaves the sandbox.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from ipaddress import IPv4Address, ip_address
from itertools import count
from typing import Any

from intercode_sandbox.api.forwarding import CHUNK, copy, event_loop, run
from intercode_sandbox.errors import SandboxError
from intercode_sandbox.network import dns, http_requests
from intercode_sandbox.network.addresses import IPAddress
from intercode_sandbox.network.client_hello import (
    HandshakeFilter,
    MalformedError,
    OtherNameError,
)
from intercode_sandbox.network.peers import Peer
from intercode_sandbox.network.rules import NAMES, OWN_ADDRESS, NetworkRules
from intercode_sandbox.platforms.forks import give_up_after_fork
from intercode_sandbox.sizes import format_size
from intercode_sandbox.types import Connection

Resolve = Callable[[str, int], Sequence[str]]
"""Returns the addresses of a name, for a port. Raises OSError."""

MAX_OPEN = 128
"""How many connections a sandbox may have at one time."""
MAX_NAMES = 4096
"""How many names below wildcards a sandbox may look up."""
_MAX_RECORDS = 1000  # the last ones are kept
_MAX_ADDRESSES = 4  # of one name that are tried
_CONNECT_SECONDS = 10.0
_BURST, _PAUSE = 32, 0.02  # queries or connections at a time, and seconds until the next
_BUFFER = 1 << 17  # bytes in the kernel that a sandbox can fill: they are not its memory
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing resets the connection
_LOOK_UPS, _LOOK_UP_SECONDS = 2, 8.0  # of one sandbox at a time, and the limit of one


class _RefusedError(Exception):
    """The connection is against the rules."""


class _Record:
    """A connection, as far as it has come."""

    _numbers = count()

    def __init__(self, host: str, port: int, refused: str = "") -> None:
        self.number = next(self._numbers)
        self.value = Connection(host, port, refused=refused, is_open=not refused)

    def set(self, **values: object) -> None:
        self.value = replace(self.value, **values)  # type: ignore[arg-type]


def _bound_buffers(listener: socket.socket) -> None:
    """Bound the buffers of what a socket accepts, which inherits this."""
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        listener.setsockopt(socket.SOL_SOCKET, option, _BUFFER)


def resolve_name(name: str, port: int) -> list[str]:
    """Return the addresses that this machine finds for a name."""
    found = socket.getaddrinfo(name.encode(), port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class Forwarder:
    """The way out of one sandbox. ``gateway``: its sockets, that of DNS first. The forwarder closes
    them. ``open_unbound`` returns a socket of the gateway by its number; those after ``gateway``
    are not bound."""

    def __init__(
        self,
        rules: NetworkRules,
        gateway: Sequence[socket.socket],
        open_unbound: Callable[[int], socket.socket],
    ) -> None:
        self._rules, self._owner = rules, os.getpid()
        self._open_unbound = open_unbound
        self._peers: dict[str, Peer] = {}
        self._peer_sockets: dict[tuple[IPv4Address, int], socket.socket] = {}
        self._open_ports: set[tuple[IPv4Address, int]] = set()  # where those listen
        self._answers: set[asyncio.Task[None]] = set()
        self.resolve: Resolve = resolve_name
        self._dns, *self._listeners = gateway
        for listener in self._listeners:
            _bound_buffers(listener)
        self._names: dict[IPv4Address, str] = {}
        self._addresses: dict[str, IPv4Address] = {}
        for rule in rules.names:
            if not rule.pattern.startswith("*"):
                self._address_for(rule.pattern)
        self._most_names = len(self._names) + MAX_NAMES
        self._records: list[_Record] = []
        self._unknown_names: dict[str, _Record] = {}  # names that no rule allows
        self._count, self._bytes = 0, 0
        self._tasks: dict[asyncio.Task[None], _Record] = {}
        self._resolving = asyncio.Semaphore(_LOOK_UPS)
        self._updating = asyncio.Lock()
        self._is_closed = False
        self._loop = event_loop()
        run(self._start(), self._loop)

    def join(self, own_name: str, peers: Mapping[str, Peer]) -> None:
        """Forward connections to other sandboxes of a group, by their names."""
        run(self._join(own_name, peers), self._loop)

    def connections(self) -> list[Connection]:
        """Return the last 1000 connections, and the first 1000 names that the rules do not name, in
        the order of time."""
        found = [*self._records, *self._unknown_names.values()]
        return [record.value for record in sorted(found, key=lambda record: record.number)]

    def close(self) -> None:
        """End all connections. May be called again. Does nothing in a forked child."""
        if self._owner == os.getpid() and not self._is_closed:
            self._is_closed = True
            run(self._close("the sandbox was closed"), self._loop)

    def close_soon(self) -> None:
        """End all connections without waiting for that, in a finalizer."""
        if self._owner == os.getpid() and not self._is_closed:
            self._is_closed = True
            asyncio.run_coroutine_threadsafe(self._close("the sandbox is gone"), self._loop)

    # ----------------------------------------------------- on the thread of the loop
    async def _start(self) -> None:
        self._watch(self._dns, self._answer)
        for listener in self._listeners:
            self._watch(listener, self._accept)

    async def _join(self, own_name: str, peers: Mapping[str, Peer]) -> None:
        self._peers = dict(peers)
        if own_name:
            self._addresses[own_name] = IPv4Address(OWN_ADDRESS)
        for name in peers:
            self._address_for(name)

    async def _close(self, reason: str) -> None:
        self._listeners.append(self._dns)
        self._stop(reason)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _stop(self, reason: str) -> None:
        """Accept nothing any more, and end what is open. Queries are still answered, because
        programs would wait for that."""
        for listener in self._listeners:
            if listener.fileno() >= 0:
                self._loop.remove_reader(listener)
                with suppress(OSError):  # a child that C code forked may hold a copy
                    listener.shutdown(socket.SHUT_RDWR)
                listener.close()
        for task, record in self._tasks.items():
            record.set(refused=record.value.refused or reason)
            task.cancel()

    def _watch(self, listener: socket.socket, serve: Callable[[socket.socket], bool]) -> None:
        """Serve a socket when something comes, with a pause after each burst, so that no sandbox
        can keep the thread busy."""
        if listener.fileno() >= 0:
            self._loop.add_reader(listener, self._serve_burst, listener, serve)

    def _serve_burst(self, listener: socket.socket, serve: Callable[[socket.socket], bool]) -> None:
        try:
            for _ in range(_BURST):
                if not serve(listener):
                    return
        except BlockingIOError:
            return
        except OSError:  # such as too many open files: try again later
            pass
        if listener.fileno() >= 0:
            self._loop.remove_reader(listener)
            self._loop.call_later(_PAUSE, self._watch, listener, serve)

    def _answer(self, listener: socket.socket) -> bool:
        """Answer a DNS query."""
        query, sender = listener.recvfrom(dns.MAX_QUERY + 1)
        names: list[str] = []

        def find(name: str) -> IPv4Address | None:
            names.append(name)
            return self._find_address(name)

        answer = dns.answer_query(query, find)
        if answer is None:
            return True
        if names and names[0] in self._peers and not self._is_current(names[0]):
            task = self._loop.create_task(self._update_and_answer(names[0], answer, sender))
            self._answers.add(task)
            task.add_done_callback(self._answers.discard)
        else:
            with suppress(OSError):
                listener.sendto(answer, sender)
        return True

    def _is_current(self, name: str) -> bool:
        """Return whether the gateway listens at the ports of a peer's servers, and at no other."""
        address = self._addresses[name]
        listening = {port for at, port in self._open_ports if at == address}
        return not self._updating.locked() and listening == self._wanted_ports(name)

    def _wanted_ports(self, name: str) -> set[int]:
        """Return the ports of a peer's servers, without those at which the gateway listens for the
        rules, and without those for which it has no socket left."""
        address = self._addresses[name]
        wanted = set(self._peers[name].ports()) - set(self._rules.ports)
        new = sorted(port for port in wanted if (address, port) not in self._peer_sockets)
        left = self._rules.peers - len(self._peer_sockets)
        return wanted - set(new[left:])

    async def _update_and_answer(self, name: str, answer: bytes, sender: Any) -> None:
        """Answer a query for a peer when the gateway listens where its servers do."""
        async with self._updating:
            address, wanted = self._addresses[name], self._wanted_ports(name)
            for at, port in list(self._open_ports):
                if at == address and port not in wanted:
                    self._unlisten(at, port)
            for port in sorted(wanted):
                with suppress(OSError, SandboxError):  # the sandbox is gone
                    await self._listen(address, port)
        with suppress(OSError):
            self._dns.sendto(answer, sender)

    async def _listen(self, address: IPv4Address, port: int) -> None:
        """Listen at a port of a peer. A bound socket keeps its port, because the supervisor has it,
        too."""
        if (address, port) in self._open_ports:
            return
        unbound = self._peer_sockets.get((address, port))
        if unbound is None:
            number = 1 + len(self._rules.ports) + len(self._peer_sockets)
            unbound = await self._loop.run_in_executor(None, self._open_unbound, number)
            if self._is_closed:
                unbound.close()
                return
            self._peer_sockets[address, port] = unbound
            self._listeners.append(unbound)
            unbound.setblocking(False)
            _bound_buffers(unbound)
            unbound.bind((str(address), port))
        unbound.listen(MAX_OPEN)
        self._open_ports.add((address, port))
        self._watch(unbound, self._accept)

    def _unlisten(self, address: IPv4Address, port: int) -> None:
        self._open_ports.discard((address, port))
        self._loop.remove_reader(self._peer_sockets[address, port])
        with suppress(OSError):
            self._peer_sockets[address, port].shutdown(socket.SHUT_RDWR)

    def _find_address(self, name: str) -> IPv4Address | None:
        if name in self._addresses:
            return self._addresses[name]
        if not self._rules.knows(name):
            if len(self._unknown_names) < _MAX_RECORDS and name not in self._unknown_names:
                self._unknown_names[name] = _Record(name, 0, "the rules do not name it")
            return None
        return self._address_for(name) if len(self._names) < self._most_names else None

    def _address_for(self, name: str) -> IPv4Address:
        """Return the address that stands for a name, which is in lower case."""
        if name not in self._addresses:
            address = NAMES.network_address + len(self._names) + 1
            self._names[address], self._addresses[name] = name, address
        return self._addresses[name]

    def _record(self, record: _Record) -> _Record:
        self._records.append(record)
        if len(self._records) > _MAX_RECORDS:
            del self._records[0]
        return record

    def _accept(self, listener: socket.socket) -> bool:
        """Accept a connection. Return False if there will be no other."""
        client, _ = listener.accept()
        give_up_after_fork(client, socket.socket.close)
        client.setblocking(False)
        address, port = client.getsockname()
        name = self._names.get(IPv4Address(address), "")
        record = self._record(_Record(name or address, port))
        self._count += name not in self._peers
        if self._count > self._rules.connections:
            reason = f"the limit of {self._rules.connections} connections is exceeded"
            self._refuse(client, record, reason)
            self._stop(reason)
            return False
        if len(self._tasks) >= MAX_OPEN:
            self._refuse(client, record, f"{MAX_OPEN} connections are open already")
            return True
        task = self._loop.create_task(self._forward(client, record, name))
        self._tasks[task] = record
        task.add_done_callback(self._tasks.pop)
        return True

    def _refuse(self, client: socket.socket, record: _Record, reason: str) -> None:
        record.set(refused=reason, is_open=False)
        with suppress(OSError):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        client.close()

    async def _forward(self, client: socket.socket, record: _Record, name: str) -> None:
        """Forward one connection to its end."""
        outside: socket.socket | None = None
        reason = ""
        try:
            outside = await self._connect(record, name)
            await self._exchange(client, outside, record, name)
        except _RefusedError as e:
            reason = str(e)
        except OSError as e:
            if outside is None:  # otherwise one side has broken the connection
                reason = e.strerror or str(e) or "no answer"
        except Exception as e:
            reason = f"it could not be forwarded: {e!r}"
        finally:
            if outside is not None:
                outside.close()
            self._refuse(client, record, record.value.refused or reason)

    async def _connect(self, record: _Record, name: str) -> socket.socket:
        """Connect to where a connection leads. Raises _RefusedError, or OSError if nothing
        answers."""
        if name in self._peers:
            return await self._connect_to_peer(self._peers[name], record.value.port)
        error: OSError = ConnectionError("it has no address")
        for address, port in (await self._find_targets(record.value, name))[:_MAX_ADDRESSES]:
            record.set(
                address=f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"
            )
            family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
            outside = socket.socket(family, socket.SOCK_STREAM)
            give_up_after_fork(outside, socket.socket.close)
            outside.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
            outside.setblocking(False)
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    await self._loop.sock_connect(outside, (str(address), port))
                return outside
            except OSError as e:
                error = e
                outside.close()
            except BaseException:
                outside.close()
                raise
        raise error

    async def _connect_to_peer(self, peer: Peer, port: int) -> socket.socket:
        try:
            outside = await self._loop.run_in_executor(None, peer.connect, port)
        except SandboxError as e:
            raise _RefusedError(str(e)) from None
        give_up_after_fork(outside, socket.socket.close)
        outside.setblocking(False)
        return outside

    async def _find_targets(self, wanted: Connection, name: str) -> list[tuple[IPAddress, int]]:
        """Return the addresses and ports to which a connection may lead. Raises _RefusedError."""
        if not name:
            if self._rules.names_address(address := ip_address(wanted.host), wanted.port):
                return [(address, wanted.port)]
            raise _RefusedError("the rules do not name this address and port")
        rule = self._rules.find(name, wanted.port)
        if rule is None:
            raise _RefusedError(f"the rules do not allow its port {wanted.port}")
        if rule.target is not None:
            return [rule.target]
        async with asyncio.timeout(_LOOK_UP_SECONDS):
            found = await self._resolve_outside(name, wanted.port)
        addresses = [ip_address(text) for text in dict.fromkeys(found)]
        allowed = [one for one in addresses if self._rules.allows_address(one, wanted.port)]
        if addresses and not allowed:
            raise _RefusedError(
                f"its address {addresses[0]} is not public, and the rules do not name it"
            )
        return [(address, wanted.port) for address in allowed]

    async def _resolve_outside(self, name: str, port: int) -> Sequence[str]:
        """Resolve a name in a thread that nobody waits for at the end of the process. Its place is
        free when the thread ends, not when the time is over."""
        await self._resolving.acquire()
        answer: asyncio.Future[Sequence[str]] = self._loop.create_future()

        def end(found: Sequence[str], error: Exception | None) -> None:
            self._resolving.release()
            if answer.done():
                return
            if error is None:
                answer.set_result(found)
            else:
                answer.set_exception(error)

        def work() -> None:
            found: Sequence[str] = ()
            error: Exception | None = None
            try:
                found = self.resolve(name, port)
            except Exception as e:
                error = e
            self._loop.call_soon_threadsafe(end, found, error)

        try:
            threading.Thread(target=work, name="intercode-resolve", daemon=True).start()
        except BaseException:
            self._resolving.release()
            raise
        return await answer

    async def _exchange(
        self, client: socket.socket, outside: socket.socket, record: _Record, name: str
    ) -> None:
        """Copy data in both directions until both have ended."""
        reader, writer = await asyncio.open_connection(sock=client)
        outer_reader, outer_writer = await asyncio.open_connection(sock=outside)

        is_peer = name in self._peers

        def count_sent(count: int) -> None:
            if not is_peer:
                self._count_bytes(count)
            record.set(sent=record.value.sent + count)

        def count_received(count: int) -> None:
            if not is_peer:
                self._count_bytes(count)
            record.set(received=record.value.received + count)

        copies = [
            self._loop.create_task(
                _send(reader, outer_writer, record.value, "" if is_peer else name, count_sent)
            ),
            self._loop.create_task(copy(outer_reader, writer, count_received)),
        ]
        try:
            await asyncio.gather(*copies)
            for one in (writer, outer_writer):
                one.close()
                with suppress(OSError):
                    await one.wait_closed()
        finally:
            for task in copies:
                task.cancel()
            if not writer.is_closing():
                with suppress(OSError):
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            for one in (writer, outer_writer):
                with suppress(AttributeError):  # asyncio raises it for some that have ended
                    one.transport.abort()

    def _count_bytes(self, count: int) -> None:
        self._bytes += count
        if self._bytes > self._rules.bytes:
            reason = f"the limit of {format_size(self._rules.bytes)} is exceeded"
            self._stop(reason)
            raise _RefusedError(reason)


async def _send(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    wanted: Connection,
    name: str,
    count: Callable[[int], object],
) -> None:
    """Copy what the sandbox sends, as far as it is for ``name``: requests of HTTP at its port, and
    elsewhere what does not begin with TLS for another name."""
    if name and wanted.port == http_requests.PORT:
        await _send_requests(reader, writer, name, count)
        return
    if name:
        await _send_checked(reader, writer, name, count)
    else:
        await copy(reader, writer, count)


async def _send_requests(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    name: str,
    count: Callable[[int], object],
) -> None:
    requests = http_requests.RequestFilter(name)
    while data := await reader.read(CHUNK):
        while data or requests.is_behind:
            try:
                passed = requests.feed(data)
            except http_requests.OtherHostError as e:
                raise _RefusedError(f"HTTP asks for {str(e)!r}, another host") from None
            except MalformedError:
                raise _RefusedError("this is no plain request of HTTP/1") from None
            count(len(passed))
            writer.write(passed)
            await writer.drain()
            data = b""
            await asyncio.sleep(0)  # others have their turn
    with suppress(OSError):
        writer.write_eof()


async def _send_checked(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    name: str,
    count: Callable[[int], object],
) -> None:
    handshake = HandshakeFilter(name)
    while data := await reader.read(CHUNK):
        try:
            passed = handshake.feed(data)
        except OtherNameError as e:
            asked = str(e)[:253]
            raise _RefusedError(
                f"TLS asks for {asked!r}, another name" if asked else "TLS asks for no name"
            ) from None
        except MalformedError:
            raise _RefusedError("its TLS handshake is malformed") from None
        count(len(passed))
        writer.write(passed)
        await writer.drain()
    if handshake.is_incomplete:
        raise _RefusedError("its TLS handshake is incomplete")
    with suppress(OSError):
        writer.write_eof()
