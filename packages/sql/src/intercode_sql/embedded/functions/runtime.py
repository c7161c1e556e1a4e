"""How functions run inside SQLite: their errors, NULL, the deadline and the size of results."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from intercode_sql.base import Deadline
from intercode_sql.dialect.errors import StatementError, unsupported

ScalarFunction = Callable[..., Any]
MAX_TEXT_LENGTH = 4 << 20
"""Characters that a function's result may have."""


class _ThreadState(threading.local):
    """State of the statement that this thread executes."""

    def __init__(self) -> None:
        self.error: StatementError | None = None
        self.deadline = Deadline()
        self.variables: dict[str, tuple[Any, int, int]] = {}
        """By the name of a user variable: its value as SQLite holds it, its decimal digits, and the
        number of the assignment that set it, or -1."""
        self.random_states: dict[str, tuple[int, int]] = {}
        """By call: the state of RAND(seed)."""


THREAD_STATE = _ThreadState()
"""SQLite reports only that a function raised an exception. The exception itself is stored here."""


def with_characters(function: ScalarFunction, gives_bytes: bool) -> ScalarFunction:
    """Let a function of strings take byte strings, each byte as a character. If it ``gives_bytes``,
    a string that it returns for them is a byte string."""

    def call(*args: Any) -> Any:
        if bytes not in map(type, args):
            return function(*args)
        result = function(*[_bytes_as_characters(a) for a in args])
        if gives_bytes and isinstance(result, str):
            return result.encode("latin-1", "replace")
        return result

    return call


def _bytes_as_characters(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value.encode().decode("latin-1") if isinstance(value, str) else value


def wrap_function(function: ScalarFunction, accepts_null: bool) -> ScalarFunction:
    """Wrap a function for SQLite.

    The wrapper stores a StatementError for the session. Unless the function ``accepts_null``, the
    result is NULL if an argument is NULL.
    """

    def call(*args: Any) -> Any:
        if not accepts_null and None in args:
            return None
        try:
            return function(*args)
        except StatementError as e:
            THREAD_STATE.error = THREAD_STATE.error or e
            raise
        except RecursionError as e:
            THREAD_STATE.error = THREAD_STATE.error or unsupported(
                "this value: it is nested too deeply"
            )
            raise StatementError(0, "") from e
        except (ValueError, OverflowError, ArithmeticError):
            return None

    return call


def check_length(size: int) -> int:
    """Return the length of a result to come. Raises StatementError if it is too large."""
    if size > MAX_TEXT_LENGTH:
        raise unsupported(f"a string of {size} characters (at most {MAX_TEXT_LENGTH})")
    return size
