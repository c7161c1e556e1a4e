"""The other sandboxes of a group, as a sandbox reaches them by their names."""

from __future__ import annotations

import socket
import sys
import weakref
from collections.abc import Mapping
from contextlib import AbstractContextManager
from ipaddress import IPv6Address
from typing import Protocol

from intercode_sandbox.errors import SandboxLostError

_LISTENING = "0A"  # the state in /proc/net/tcp
_LOOPBACK = 127


class PeerSandbox(Protocol):
    """A sandbox with a network of its own that rules bound, which others can reach."""

    def join(self, peers: Mapping[str, PeerSandbox]) -> None:
        """Let programs reach other sandboxes by these names; its own is one of them."""
        ...

    def listening_ports(self) -> frozenset[int]:
        """Return the ports at which servers listen for other hosts."""
        ...

    def paused(self) -> AbstractContextManager[None]:
        """Pause all processes inside the ``with`` block."""
        ...

    def connect_from_peer(self, port: int) -> socket.socket:
        """Return a connection to a server, as another sandbox of the group makes it. Raises OSError
        if none listens there."""
        ...


class Peer:
    """Another sandbox of the group, which this does not keep open."""

    def __init__(self, sandbox: PeerSandbox) -> None:
        self._sandbox = weakref.ref(sandbox)

    def ports(self) -> frozenset[int]:
        """Return the ports at which its servers listen for other hosts."""
        sandbox = self._sandbox()
        return sandbox.listening_ports() if sandbox else frozenset()

    def connect(self, port: int) -> socket.socket:
        """Return a connection to a server in it. Raises OSError if none listens there."""
        sandbox = self._sandbox()
        if sandbox is None:
            raise SandboxLostError("this sandbox of the group is closed")
        return sandbox.connect_from_peer(port)


def listening_ports(pid: int) -> frozenset[int]:
    """Return the TCP ports at which something listens in the network of a process, without those of
    the loopback device alone."""
    found = set()
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{table}", encoding="ascii") as file:
                lines = file.readlines()[1:]
        except OSError:  # the sandbox has ended, or there is no IPv6
            continue
        for line in lines:
            fields = line.split()
            address, _, port = fields[1].partition(":")
            if fields[3] == _LISTENING and not _is_loopback(address):
                found.add(int(port, 16))
    return frozenset(found)


def _is_loopback(text: str) -> bool:
    """Return whether an address of /proc/net, in the byte order of this machine, is one of the
    loopback device."""
    words = [bytes.fromhex(text[at : at + 8]) for at in range(0, len(text), 8)]
    raw = b"".join(int.from_bytes(word, "big").to_bytes(4, sys.byteorder) for word in words)
    if len(raw) == 4:
        return raw[0] == _LOOPBACK
    return IPv6Address(raw).is_loopback
