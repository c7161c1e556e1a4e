"""Time limits that a test ends: what they kill is real, the moment is an event."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from intercode_sandbox.long_output import Collector
from support.sandboxes import PATIENCE

_MODULES = (
    "intercode_sandbox.silence",
    "intercode_sandbox.streams",
    "intercode.sessions.bash.fresh",
    "intercode.sessions.bash.persistent",
    "intercode.sessions.bash.shell",
    "intercode.sessions.programs.repl",
    "intercode.sessions.python.interpreter",
)


class _Time:
    """Stands still until time limits are over, and again from then on: a shell has as long as it
    needs to begin an action and to give it up."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self.is_over = False

    def monotonic(self) -> float:
        passed = time.monotonic() - self._start
        return self._start + (passed > PATIENCE) * passed + self.is_over * 2 * PATIENCE


@contextmanager
def limit_at(mark: str) -> Iterator[None]:
    """While the block runs, a limit of ``PATIENCE`` on time or silence is over as soon as ``mark``
    is printed."""
    clock: Any = _Time()
    add = Collector.add

    def add_and_check(collector: Collector, data: bytes) -> None:
        add(collector, data)
        clock.is_over |= mark.encode() in data

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Collector, "add", add_and_check)
        for name in _MODULES:
            if name in sys.modules:
                patch.setattr(sys.modules[name], "time", clock)
        yield
