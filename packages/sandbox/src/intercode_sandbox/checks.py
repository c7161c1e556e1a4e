"""Assertions of the modules ``testing``, with messages that say what does not hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def require(condition: bool, message: str) -> None:
    """Raise AssertionError with a message unless a condition holds, also under ``python -O``."""
    if not condition:
        raise AssertionError(message)


def expect_error(error: type[BaseException], call: Callable[[], Any], what: str) -> str:
    """Return the message of the error that a call raises.

    Raises AssertionError if the call, which ``what`` describes, raises no error or a different one.
    """
    try:
        call()
    except error as e:
        return str(e)
    except Exception as e:
        raise AssertionError(f"{what} raises {e!r} instead of {error.__name__}") from e
    raise AssertionError(f"{what} does not raise {error.__name__}")
