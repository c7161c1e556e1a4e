"""How functions run inside SQLite: their errors, NULL, the deadline and the size of results."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from intercode.sql.deadline import Deadline
from intercode.sql.dialect.errors import StatementError, unsupported

ScalarFunction = Callable[..., Any]
MAX_TEXT_LENGTH = 4 << 20
"""Characters that a function's result may have."""


class _ThreadState(threading.local):
    """State of the statement that this thread executes."""

    error: StatementError | None = None
    deadline: Deadline = Deadline()


THREAD_STATE = _ThreadState()
"""SQLite reports only that a function raised an exception. The exception itself is stored here."""


def wrap_function(function: ScalarFunction, accepts_null: bool = False) -> ScalarFunction:
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
