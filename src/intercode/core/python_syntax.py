"""Python code as a tree."""

from __future__ import annotations

import ast
import threading

_parse_lock = threading.Lock()


def parse_python(code: str) -> ast.Module:
    """As ``ast.parse``, which several threads may not use at once: some releases of Python 3.11
    count how deep a tree is for all of them together, and fail with SystemError.

    Raises SyntaxError, ValueError (a NUL byte), MemoryError and RecursionError as it does.
    """
    with _parse_lock:
        return ast.parse(code)
