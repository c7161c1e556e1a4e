"""How much of a long output is kept and shown: its beginning, its end, and a line between them."""

from __future__ import annotations

from collections import deque


def omission_note(omitted: int) -> str:
    """Return the line that stands for ``omitted`` bytes in the middle of an output."""
    return f"\n[... {omitted} bytes left out ...]\n" if omitted else ""


def split_limit(limit: int) -> tuple[int, int]:
    """Return how much of the beginning and of the end of an output is kept, ``limit`` in all."""
    return limit - limit // 2, limit // 2


def shorten(text: str, limit: int) -> tuple[str, int]:
    """Return at most ``limit`` characters of the beginning and the end of a text, with a line for
    the part between them, and the bytes of that part."""
    if len(text) <= limit:
        return text, 0
    head, tail = split_limit(limit)
    end = len(text) - tail
    omitted = len(text[head:end].encode("utf-8", "surrogatepass"))
    return f"{text[:head]}{omission_note(omitted)}{text[end:]}", omitted


class Collector:
    """Keeps at most ``limit`` bytes of output, from its beginning and its end."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._head_room, self._tail_room = split_limit(limit)
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.dropped = 0

    def add(self, data: bytes) -> None:
        """Append output."""
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

    def bytes(self) -> bytes:
        """Return the kept output, with a line for the omitted part."""
        return b"".join((*self._head, omission_note(self.dropped).encode(), *self._tail))
