"""Python code as a tree."""

from __future__ import annotations

import ast
import threading

_one_at_a_time = threading.Lock()


def parse(code: str) -> ast.Module:
    """As ``ast.parse``, which several threads may not use at once: some releases of Python 3.11
    count how deep a tree is for all of them together, and fail with SystemError.

    Raises SyntaxError, ValueError (a NUL byte), MemoryError and RecursionError as it does.
    """
    with _one_at_a_time:
        return ast.parse(code)
