"""One end of a connection, of a client or a server: messages and streams, to and from frames."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from intercode_sandbox.remote.protocol import (
    CHUNK,
    MAX_BODY,
    MAX_HEADER,
    Kind,
    ProtocolError,
    frame,
)
from intercode_sandbox.remote.relay import Relay

MAX_MESSAGE = MAX_BODY + MAX_HEADER
_MAX_PARTIAL = 64  # messages whose last part has not come
_MAX_CHANNELS = 4096


class FrameSocket(Protocol):
    """What this module needs of a WebSocket."""

    async def send_bytes(self, data: bytes) -> None:
        """Send a frame, as soon as the other side has read enough. Raises OSError."""


class ConnectionEnd:
    """The frames that wait to be sent (``queued``: their bytes), the messages that have arrived in
    part, and the streams (``relay``).

    ``max_queued``: the bytes above which ``overflow`` is called in place of sending. All methods
    run in the event loop of the connection. ``passes_descriptors`` is that of Relay.
    """

    def __init__(
        self,
        passes_descriptors: bool,
        max_queued: float = float("inf"),
        overflow: Callable[[], None] = lambda: None,
    ) -> None:
        self.queued = 0
        self._max_queued, self._overflow = max_queued, overflow
        self._outgoing: deque[bytes] = deque()
        self._ready = asyncio.Event()
        self._partial: dict[int, bytearray] = {}
        self.relay = Relay(self.send, passes_descriptors, _MAX_CHANNELS)

    def send(self, data: bytes) -> None:
        """Send a frame, after those before it."""
        if self.queued > self._max_queued:
            self._overflow()
            return
        self._outgoing.append(data)
        self.queued += len(data)
        self._ready.set()

    def send_message(self, number: int, message: bytes) -> None:
        """Send a message in as many frames as it needs."""
        view = memoryview(message)
        while len(view) > CHUNK:
            self.send(frame(Kind.PART, number, view[:CHUNK]))
            view = view[CHUNK:]
        self.send(frame(Kind.MESSAGE, number, view))

    async def write_frames(self, socket: FrameSocket) -> None:
        """Write what is sent to a WebSocket, until that fails."""
        with suppress(OSError):
            while True:
                while self._outgoing:
                    data = self._outgoing.popleft()
                    self.queued -= len(data)
                    await socket.send_bytes(data)
                self._ready.clear()
                await self._ready.wait()

    def receive_part(self, kind: Kind, number: int, payload: bytes) -> bytearray | None:
        """Add a frame to its message. Return the message if the frame is its last. Raises
        ProtocolError if all in part have more than MAX_MESSAGE bytes, or are too many."""
        parts = self._partial.pop(number, None) or bytearray()
        parts += payload
        total = len(parts) + sum(map(len, self._partial.values()))
        if total > MAX_MESSAGE or len(self._partial) >= _MAX_PARTIAL:
            raise ProtocolError(f"messages of more than {MAX_MESSAGE} bytes, or too many in part")
        if kind is Kind.MESSAGE:
            return parts
        self._partial[number] = parts
        return None
