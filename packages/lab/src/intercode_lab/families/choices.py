"""Choices that are the same on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
WORDS = (
    "alder",
    "brook",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "harbor",
    "inlet",
    "jetty",
    "knoll",
    "larch",
    "meadow",
    "north",
    "orchard",
    "pebble",
)
"""Words of new names and texts."""


class Choices:
    """A reproducible sequence of choices. ``key``: choices with an equal key are equal."""

    def __init__(self, *key: object) -> None:
        self._key = hashlib.sha256("\0".join(map(str, key)).encode()).digest()
        self._count = 0

    def index(self, size: int) -> int:
        """Return a number from 0 to ``size`` - 1."""
        self._count += 1
        digest = hashlib.sha256(self._key + self._count.to_bytes(8, "big")).digest()
        return int.from_bytes(digest, "big") % size

    def between(self, low: int, high: int) -> int:
        """Return a number from ``low`` to ``high``, both included."""
        return low + self.index(high - low + 1)

    def chance(self, percent: int) -> bool:
        """Return true in so many percent of all calls."""
        return self.index(100) < percent

    def one(self, items: Sequence[T]) -> T:
        """Return one of the items, of which there is at least one."""
        return items[self.index(len(items))]

    def some(self, items: Sequence[T], count: int) -> list[T]:
        """Return ``count`` different items, or all if there are fewer, in a random order."""
        rest = list(items)
        return [rest.pop(self.index(len(rest))) for _ in range(min(count, len(rest)))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return all items in a random order."""
        return self.some(items, len(items))

    def name(self, digits: int) -> str:
        """Return so many hexadecimal digits."""
        return f"{self.index(16**digits):0{digits}x}"

    def data(self, size: int) -> bytes:
        """Return so many bytes."""
        return bytes(self.index(256) for _ in range(size))
