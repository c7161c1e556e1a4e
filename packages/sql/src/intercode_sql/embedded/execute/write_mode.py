"""How a statement that writes treats values that do not fit: as errors, or with IGNORE or without a
strict mode as the nearest values that do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from intercode_sql.dialect.errors import mysql_error
from intercode_sql.embedded.catalog.catalog import Column
from intercode_sql.embedded.catalog.nearest import default_or_implicit, nearest_value
from intercode_sql.embedded.catalog.values import default_value, to_stored
from intercode_sql.embedded.compile.strict_values import checked_values
from intercode_sql.embedded.execute.context import SessionContext

IGNORED_ERRORS = frozenset({1062, 1451, 1452})
"""Numbers of the errors for which a statement with IGNORE leaves a row out."""


@dataclass(frozen=True, slots=True)
class WriteMode:
    """``store`` converts a value to the one that a column holds; ``default`` returns the value of a
    column for which a statement gives none, at that time."""

    strict: bool
    ignore: bool
    modes: frozenset[str]
    store: Callable[[Any, Column, int], Any]
    default: Callable[[Column, str], Any]

    def checks(self) -> AbstractContextManager[None]:
        """Compile expressions so that in a strict mode their wrong values are errors."""
        return checked_values(self.strict, self.modes)


def write_mode(session: SessionContext, ignore: bool, one_row: bool = False) -> WriteMode:
    """Return the mode of a statement. ``one_row`` is an INSERT of one row, into which even without
    a strict mode no NULL is written where none can be."""
    if session.strict and not ignore:
        return WriteMode(True, False, session.modes, to_stored, default_value)
    keeps_null_error = one_row and not ignore
    store = _nearest_but_null if keeps_null_error else nearest_value
    return WriteMode(False, ignore, session.modes, store, default_or_implicit)


def _nearest_but_null(value: Any, column: Column, row: int) -> Any:
    if value is None and not column.nullable and not column.auto:
        raise mysql_error(1048, column.name)
    return nearest_value(value, column, row)
