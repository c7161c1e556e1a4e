"""What all registered functions share: how an error gets out, and the time that is left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from intercode.sql.deadline import Deadline
from intercode.sql.dialect.errors import StatementError, mysql_error, unsupported
from intercode.sql.embedded.catalog.collations import collation_key as string_collation_key

ScalarFunction = Callable[..., Any]
MAX_TEXT_LENGTH = 4 << 20
"""Characters that a function's result may have."""


class _ThreadState(threading.local):
    """What holds while this thread executes a statement."""

    error: StatementError | None = None
    deadline: Deadline = Deadline()


THREAD_STATE = _ThreadState()
"""SQLite tells nothing of an exception in a function but that there was one: it is kept here."""


def wrap_function(function: ScalarFunction) -> ScalarFunction:
    """A function whose StatementError is kept for the session. One of NULL gives NULL, unless it
    is marked as taking NULL itself."""
    takes_null = getattr(function, "takes_null", False)

    def call(*args: Any) -> Any:
        if not takes_null and None in args:
            return None
        try:
            return function(*args)
        except StatementError as e:
            THREAD_STATE.error = THREAD_STATE.error or e
            raise
        except RecursionError as e:
            THREAD_STATE.error = THREAD_STATE.error or unsupported(
                "this value: it lies too deep in itself"
            )
            raise StatementError(0, "") from e
        except (ValueError, OverflowError, ArithmeticError):
            return None

    return call


def accepts_null(function: ScalarFunction) -> ScalarFunction:
    """Marks a function that sees NULL among its arguments."""
    function.takes_null = True  # type: ignore[attr-defined]
    return function


def check_length(size: int) -> int:
    """The size of a result to come. Raises StatementError where it is too large."""
    if size > MAX_TEXT_LENGTH:
        raise unsupported(f"a string of {size} characters (at most {MAX_TEXT_LENGTH})")
    return size


def raise_error(number: int) -> None:
    """Fails with MySQL's error of that number."""
    if number == 3636:
        raise mysql_error(3636, 1001)
    raise mysql_error(number)


def sleep(seconds: float) -> int:
    """SLEEP, which ends with the statement's time, and with its session."""
    end = time.monotonic() + max(0.0, float(seconds))
    while (now := time.monotonic()) < end:
        if THREAD_STATE.deadline.expired:
            raise StatementError(3024, "")
        time.sleep(min(0.02, end - now))
    return 0


def value_collation_key(value: Any, collation: str) -> Any:
    """What is equal for strings that a collation takes for equal."""
    return string_collation_key(value, collation) if isinstance(value, str) else value  # type: ignore[arg-type]


def as_tuple(*parts: Any) -> str:
    """Several values as one; NULL where one of them is."""
    return repr(parts)


FUNCTIONS: dict[str, ScalarFunction] = {
    "raise": raise_error, "sleep": sleep, "key": value_collation_key, "tuple": as_tuple,
}  # fmt: skip
