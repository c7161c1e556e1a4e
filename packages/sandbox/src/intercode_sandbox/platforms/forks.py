"""Forks on every operating system.

What a process has opened belongs to that process. A forked child gives up what it inherits, through
one hook: it closes the descriptors, whose ends the parent's sandboxes wait for, and refuses to use
the rest (``refuse_inherited``).
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from intercode_sandbox.errors import UsageError

T = TypeVar("T")
_owned: WeakKeyDictionary[Any, Callable[[Any], object]] = WeakKeyDictionary()
_opening = threading.RLock()
"""Held while descriptors are opened and recorded, and by a thread that forks."""


def run_after_fork(action: Callable[[], Any]) -> None:
    """Run a function in every child that is forked from this process, where forks exist."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=action)


def give_up_after_fork(owned: T, give_up: Callable[[T], object]) -> None:
    """Call ``give_up`` with an object of this process in every child that inherits it."""
    with _opening:
        _owned[owned] = give_up


def own_socketpair(*arguments: int) -> tuple[socket.socket, socket.socket]:
    """Return what ``socket.socketpair`` does. A forked child closes what it inherits of it."""
    with _opening:
        pair = socket.socketpair(*arguments)
        for end in pair:
            give_up_after_fork(end, socket.socket.close)
    return pair


def refuse_inherited(owner: int, what: str = "sandbox") -> None:
    """Raise UsageError if ``owner``, which opened something, is not this process."""
    if owner != os.getpid():
        raise UsageError(
            f"the process {owner} opened this {what}, and the process {os.getpid()} was forked "
            "from it: open another one here"
        )


def _give_up_inherited() -> None:
    global _opening
    _opening = threading.RLock()
    for owned, give_up in list(_owned.items()):  # again in a child of this one
        with suppress(OSError):
            give_up(owned)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _opening.acquire(),
        after_in_parent=lambda: _opening.release(),
        after_in_child=_give_up_inherited,
    )


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
