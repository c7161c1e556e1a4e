"""How much of a long output is kept and shown: its beginning, its end, and a line between them."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from intercode_sandbox.silence import Silence


class Excerpt(NamedTuple):
    """The beginning and the end of a text, with a line for the part between them.

    ``shown``: the characters of the text in it. ``omitted_bytes``: the size of the other part.
    """

    text: str
    shown: int
    omitted_bytes: int


def omission_note(omitted: int) -> str:
    """Return the line that stands for ``omitted`` bytes in the middle of an output."""
    return f"\n[... {omitted} bytes left out ...]\n" if omitted else ""


def split_limit(limit: int) -> tuple[int, int]:
    """Return how much of the beginning and of the end of an output is kept. An output that is
    longer than both together is cut."""
    return limit - limit // 2, limit // 2


def shorten(text: str, limit: int) -> Excerpt:
    """Return an excerpt with at most ``limit`` characters of a text."""
    head, tail = split_limit(limit)
    end = max(head, len(text) - tail)
    omitted = text[head:end]
    size = len(omitted.encode("utf-8", "surrogatepass"))
    shown = len(text) - len(omitted)
    return Excerpt(f"{text[:head]}{omission_note(size)}{text[end:]}", shown, size)


class Collector:
    """Keeps at most ``limit`` bytes of output, from its beginning and its end. Each output begins
    ``silence`` again."""

    def __init__(self, limit: int, silence: Silence | None = None) -> None:
        self.limit, self.silence = limit, silence or Silence(None)
        self._head_room, self._tail_room = split_limit(limit)
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.dropped = 0

    def add(self, data: bytes) -> None:
        """Append output."""
        if data:
            self.silence.begin()
        if self._head_room:
            self._head.append(data[: self._head_room])
            data = data[self._head_room :]
            self._head_room -= len(self._head[-1])
        if not data:
            return
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail_size > self._tail_room:
            surplus = self._tail_size - self._tail_room
            first = self._tail.popleft()
            if len(first) > surplus:
                self._tail.appendleft(first[surplus:])
            dropped = min(surplus, len(first))
            self._tail_size -= dropped
            self.dropped += dropped

    def bytes(self, *, note: bool = True) -> bytes:
        """Return the kept output, with a line for the omitted part unless without ``note``."""
        between = omission_note(self.dropped).encode() if note else b""
        return b"".join((*self._head, between, *self._tail))
