"""Supervisors that are started before a request, and requests that are made again and again, whose
sandboxes can be set up ahead."""

from __future__ import annotations

import os
import socket

from . import protocol

TYPE_CHECKING = False  # importing typing would double this process's memory
if TYPE_CHECKING:
    from typing import Any

    from .start import Kind

    FileIdentity = tuple[int, int, int] | None

_TIMES = 3  # requests in a row after which another one is expected


class RepeatedRequest:
    """A request without descriptors of other sandboxes. Two are equal if they ask for the same, and
    no directory or file of the machine that the sandbox shows was replaced in between."""

    def __init__(self, request: dict[str, Any], kind: Kind) -> None:
        self.request, self.kind = request, kind
        mounts = [source for source, _ in request["binds"] + request["anonymous_mounts"]]
        self._files = [_identify(path) for path in [*request["layers"], *mounts]]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RepeatedRequest)
            and (self.request, self.kind) == (other.request, other.kind)
            and self._files == other._files
        )

    __hash__ = None  # type: ignore[assignment]


class PrewarmedSupervisor:
    """A supervisor that waits for a request on a socket: its control group, its user id, and its
    kind. ``ahead``: the request whose sandbox it sets up, which only lacks an owner."""

    def __init__(self, kind: Kind, group: str, user: int, connection: socket.socket) -> None:
        self.kind, self.group, self.user, self.socket = kind, group, user, connection
        self.ahead: RepeatedRequest | None = None

    def hand_over(self, owner: int) -> bool:
        """Give the supervisor of a sandbox that it sets up ahead the connection to the owner.
        Return False if it could not set it up, or was killed."""
        try:
            self.socket.recv(1, socket.MSG_DONTWAIT)  # it sends nothing; an end says that it failed
            return False
        except BlockingIOError:
            pass
        except OSError:
            return False
        try:
            protocol.send(self.socket, {}, [owner])
        except OSError:
            return False
        return True


class RequestHistory:
    """The last request, and how often it was made in a row. ``expected``: what will be requested
    next, if that can be said."""

    def __init__(self) -> None:
        self._last: RepeatedRequest | None = None
        self._times = 0
        self.expected: RepeatedRequest | None = None

    def add(
        self, request: dict[str, Any], kind: Kind, has_descriptors: bool
    ) -> RepeatedRequest | None:
        """Note a request, and return it if it can be made again. Files on disk belong to one
        sandbox, and a deterministic one reads its directories in an order of its own."""
        if has_descriptors or request["upper"] or request["deterministic"]:
            return None
        asked = RepeatedRequest(request, kind)
        self._times = self._times + 1 if asked == self._last else 1
        self._last = asked
        self.expected = asked if self._times >= _TIMES else None
        return asked


def _identify(path: str) -> FileIdentity:
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino, info.st_mtime_ns
