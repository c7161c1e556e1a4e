"""A random number generator that gives the same numbers on every machine and Python version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

_T = TypeVar("_T")


class LinearCongruentialGenerator:
    """A linear congruential generator with the constants of Numerical Recipes."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def randrange(self, bound: int) -> int:
        """Return the next integer in 0 … ``bound`` - 1."""
        self._state = (1664525 * self._state + 1013904223) % 2**32
        return (self._state >> 12) % bound

    def pick(self, choices: Sequence[_T]) -> _T:
        """Return one of ``choices``."""
        return choices[self.randrange(len(choices))]
