"""How much of a long output is kept and shown: its beginning, its end, and a line between them."""

from __future__ import annotations

from collections import deque


def omission_note(omitted: int) -> str:
    """Return the line that stands for ``omitted`` bytes in the middle of an output."""
    return f"\n[... {omitted} bytes left out ...]\n" if omitted else ""


def shorten(text: str, limit: int) -> tuple[str, int]:
    """Return at most ``limit`` characters of a text, half from its beginning and half from its end,
    with a line for the part between them, and the bytes of that part."""
    if len(text) <= limit:
        return text, 0
    end = len(text) - limit // 2
    omitted = len(text[limit - limit // 2 : end].encode("utf-8", "surrogatepass"))
    return f"{text[: limit - limit // 2]}{omission_note(omitted)}{text[end:]}", omitted


class Collector:
    """Keeps at most ``limit`` bytes of output, half from the beginning and half from the end."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._head_room = limit - limit // 2
        self._tail_room = limit // 2
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
