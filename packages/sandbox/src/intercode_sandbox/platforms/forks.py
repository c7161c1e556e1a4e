"""Forks on every operating system."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any


def run_after_fork(action: Callable[[], Any]) -> None:
    """Run a function in every child that is forked from this process, where forks exist."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=action)


class ForkSafeLock:
    """A lock of a module, which is free in every forked child.

    The thread that holds it during the fork does not exist in the child and cannot release it.
    """

    def __init__(self) -> None:
        self._reset()
        run_after_fork(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
