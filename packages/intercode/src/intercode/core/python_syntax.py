"""Parses Python code, from any number of threads."""

from __future__ import annotations

import ast

from intercode_sandbox.platforms.forks import ForkSafeLock

_parse_lock = ForkSafeLock()


def parse_python(code: str) -> ast.Module:
    """Call ``ast.parse`` in one thread at a time.

    Some releases of Python 3.11 share the counter of the tree's depth between threads, and fail
    with SystemError. Raises SyntaxError, ValueError (a NUL byte), MemoryError and RecursionError.
    """
    with _parse_lock:
        return ast.parse(code)
