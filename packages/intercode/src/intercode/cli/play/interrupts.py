"""Decides what Ctrl-C stops at a terminal, so that it interrupts nothing else half-way."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

MAX_PRESSES = 5
"""Pressed this many times while nothing may be interrupted, Ctrl-C still ends the session."""


class InterruptGate:
    """Raises KeyboardInterrupt for Ctrl-C only inside a block that allows it.

    Ctrl-C that was pressed before the block interrupts it at once, unless ``clear`` was called
    between.
    """

    def __init__(self) -> None:
        self._allowed = False
        self._pressed = 0

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Handle SIGINT while the block runs. Only the main thread may call this."""
        before = signal.signal(signal.SIGINT, self._decide)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Let Ctrl-C interrupt the block."""
        self._allowed = True
        try:
            if self._pressed:
                raise KeyboardInterrupt
            yield
        finally:
            self._allowed, self._pressed = False, 0

    def clear(self) -> None:
        """Discard what was pressed so far."""
        self._pressed = 0

    def _decide(self, number: int, frame: Any) -> None:  # noqa: ARG002
        self._pressed += 1
        if self._allowed or self._pressed >= MAX_PRESSES:
            raise KeyboardInterrupt
