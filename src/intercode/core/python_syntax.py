"""Parses Python code, from any number of threads."""

from __future__ import annotations

import ast
import threading

from intercode.core.portability.services import run_after_fork

_parse_lock = threading.Lock()


def _reset_after_fork() -> None:
    """Replace the lock, which another thread may have held during the fork."""
    global _parse_lock
    _parse_lock = threading.Lock()


run_after_fork(_reset_after_fork)


def parse_python(code: str) -> ast.Module:
    """Call ``ast.parse`` in one thread at a time.

    Some releases of Python 3.11 share the counter of the tree's depth between threads, and fail
    with SystemError. Raises SyntaxError, ValueError (a NUL byte), MemoryError and RecursionError.
    """
    with _parse_lock:
        return ast.parse(code)
