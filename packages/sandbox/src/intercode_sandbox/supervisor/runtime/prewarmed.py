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

    RepeatedRequest = tuple[dict[str, Any], Kind]
    """A request without descriptors of other sandboxes, and the kind of its supervisor."""
    FileIdentity = tuple[int, int, int] | None

_NOTHING = ("", "/dev/null")  # sources of mounts that hide a directory or a file
_TIMES = 3  # requests in a row after which another one is expected


class PrewarmedSupervisor:
    """A supervisor that waits for a request on a socket: its control group, its user id, and its
    kind. ``ahead``: the request whose sandbox it sets up, which only lacks an owner."""

    def __init__(self, kind: Kind, group: str, user: int, connection: socket.socket) -> None:
        self.kind, self.group, self.user, self.socket = kind, group, user, connection
        self.ahead: RepeatedRequest | None = None
        self._files: list[FileIdentity] = []

    def expect(self, request: RepeatedRequest) -> None:
        """Note the request whose sandbox is to be set up, and the files that it will show."""
        self.ahead, self._files = request, identify_files(request[0])

    def is_current(self) -> bool:
        """Return whether no directory or file of the machine that the sandbox shows or hides was
        replaced since ``expect``."""
        return self.ahead is not None and self._files == identify_files(self.ahead[0])

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
        sandbox, a deterministic one reads its directories in an order of its own, and those of
        ``mounts`` were checked for one sandbox."""
        if has_descriptors or request["upper"] or request["deterministic"] or request["mounts"]:
            return None
        asked = request, kind
        self._times = self._times + 1 if asked == self._last else 1
        self._last = asked
        self.expected = asked if self._times >= _TIMES else None
        return asked

    def restart(self) -> None:
        """Count from the last request on."""
        self._times, self.expected = 1, None


def identify_files(request: dict[str, Any]) -> list[FileIdentity]:
    """Return what changes if a directory or file is replaced that a sandbox shows or hides."""
    return [_identify(path) for path in _list_paths(request)]


def _list_paths(request: dict[str, Any]) -> list[str]:
    """Return the paths of what a sandbox shows, and of what it hides if it is there."""
    layers, mounts = request["layers"], request["binds"] + request["anonymous_mounts"]
    shown = [(source, path) for source, path in mounts if source not in _NOTHING]
    hidden = [path for source, path in mounts if source in _NOTHING]
    return [
        *layers,
        *(source for source, _ in shown),
        *(f"{layer}{path}" for path in hidden for layer in layers),
        *(
            source + path.removeprefix(above)
            for path in hidden
            for source, above in shown
            if path.startswith(f"{above}/")
        ),
    ]


def _identify(path: str) -> FileIdentity:
    """Return what changes if a file is replaced. A change of its name changes its third number."""
    try:
        info = os.stat(path)
    except (OSError, ValueError):  # ValueError: no file can have this name
        return None
    return info.st_dev, info.st_ino, info.st_ctime_ns
