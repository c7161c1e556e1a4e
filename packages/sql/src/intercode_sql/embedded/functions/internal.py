"""Functions that compiled statements call and that SQL does not name."""

from __future__ import annotations

import time
from typing import Any

from intercode_sql.dialect.errors import StatementError, mysql_error
from intercode_sql.embedded.catalog import collations, types
from intercode_sql.embedded.functions.registry import internal
from intercode_sql.embedded.functions.runtime import THREAD_STATE


@internal("raise", deterministic=False)
def raise_error(number: int) -> None:
    """Fail with MySQL's error of that number."""
    if number == 3636:
        raise mysql_error(3636, 1001)
    raise mysql_error(number)


@internal("sleep", deterministic=False)
def sleep(seconds: float) -> int:
    """Wait for ``seconds``, at most until the statement's deadline. SLEEP is compiled to this."""
    end = time.monotonic() + max(0.0, float(seconds))
    while (now := time.monotonic()) < end:
        if THREAD_STATE.deadline.expired:
            raise StatementError(3024, "")
        time.sleep(min(0.02, end - now))
    return 0


@internal("key")
def collation_key(value: Any, collation: str) -> Any:
    """Return a key that is equal for strings which the collation considers equal."""
    if not isinstance(value, str):
        return value
    return collations.collation_key(value, collation)


@internal("bit_bytes")
def bit_bytes(value: int, size: int) -> bytes:
    """Return the bytes of a BIT."""
    return int(value).to_bytes(size, "big")


@internal("set_number")
def set_number(value: str, members: str) -> int:
    """Return the number of a SET's value. ``members`` are its words with commas."""
    return types.set_number(value, members.split(","))


@internal("tuple")
def as_tuple(*parts: Any) -> str:
    """Combine several values into one. The result is NULL if one of them is."""
    return repr(parts)
