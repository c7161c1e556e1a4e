"""Ctrl-C at a terminal: it stops what may be stopped, and breaks nothing else in the middle."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

MAX_PRESSES = 5
"""So many times pressed where nothing may be stopped, Ctrl-C ends the session all the same."""


class InterruptGate:
    """Lets Ctrl-C through only while it is open; one that came before is let through then, unless
    the person has been asked for something since."""

    def __init__(self) -> None:
        self._allowed = False
        self._pressed = 0

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Decide on Ctrl-C as long as the block lasts. For the main thread."""
        before = signal.signal(signal.SIGINT, self._decide)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """What runs in the block may be stopped."""
        self._allowed = True
        try:
            if self._pressed:
                raise KeyboardInterrupt
            yield
        finally:
            self._allowed, self._pressed = False, 0

    def clear(self) -> None:
        """What was pressed so far was not meant for what comes."""
        self._pressed = 0

    def _decide(self, number: int, frame: Any) -> None:  # noqa: ARG002
        self._pressed += 1
        if self._allowed or self._pressed >= MAX_PRESSES:
            raise KeyboardInterrupt
