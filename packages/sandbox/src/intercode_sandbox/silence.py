"""Measures how long a command has written nothing."""

from __future__ import annotations

import math
import time


class Silence:
    """How long a command may write nothing, and whether it was longer.

    ``seconds``: None for no limit. ``exceeded``: the command was silent for that long before its
    time limit; it stays so, and what waits for the command to end is no longer limited by it.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = math.inf if seconds is None else seconds
        self._begin = time.monotonic()
        self.exceeded = False

    def begin(self) -> None:
        """Start again, because the command has started or has written."""
        if self._seconds < math.inf:
            self._begin = time.monotonic()

    def left(self, deadline: float) -> float:
        """Return the seconds until the command has to end, at its time limit or for its silence."""
        now = time.monotonic()
        left = deadline - now
        if self.exceeded:
            return left
        left_silent = self._begin + self._seconds - now
        self.exceeded = left_silent <= 0 < left
        return min(left, left_silent)

    def is_over(self, deadline: float) -> bool:
        """Return whether the command had to be ended."""
        return self.exceeded or time.monotonic() >= deadline
