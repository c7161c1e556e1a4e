"""Triggers of a dump: their definitions, and those that rows of the dump itself start.

Dumps of mysqldump create triggers after the rows. Others create them before, so that they run for
every row. Of these, the loader runs triggers of SET and INSERT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from intercode_sql.dialect.tokens import TokenReader
from intercode_sql.embedded.catalog.catalog import Table
from intercode_sql.errors import SqlDataError
from intercode_sql.literals import MYSQL_LITERALS

Evaluate = Callable[[str], Any]
"""Returns the value of an expression."""


@dataclass(frozen=True, slots=True)
class TriggerStatement:
    """A CREATE TRIGGER. ``moment`` is such as ``BEFORE INSERT``."""

    name: str
    moment: str
    database: str
    table: str
    body: str


def read_create_trigger(code: str) -> TriggerStatement:
    """Read a CREATE TRIGGER. Raises StatementError 1064 for anything else."""
    reader = TokenReader(code, reserved=False)
    while not reader.accept("TRIGGER"):
        reader.take()
    reader.accept("IF", "NOT", "EXISTS")
    _, name = reader.names()
    moment = f"{reader.take().upper} {reader.take().upper}"
    reader.expect("ON")
    database, table = reader.names()
    reader.expect("FOR", "EACH", "ROW")
    if reader.accept_any("FOLLOWS", "PRECEDES"):
        reader.name()
    return TriggerStatement(name, moment, database, table.lower(), reader.rest())


@dataclass(frozen=True, slots=True)
class _Action:
    """An assignment to a column of the new row, or the values of a row for another table."""

    table: tuple[str, str] | None
    columns: tuple[str, ...]
    values: tuple[str, ...]


class RowTriggers:
    """The triggers of a table that rows of a dump start.

    Raises SqlDataError for a trigger that is neither of SET nor of INSERT ... VALUES.
    """

    def __init__(self, table: Table) -> None:
        started = [t for t in table.triggers if t[1].endswith("INSERT")]
        self._before = [a for t in started if t[1].startswith("BEFORE") for a in _actions(t, table)]
        self._after = [a for t in started if t[1].startswith("AFTER") for a in _actions(t, table)]
        self._table = table

    def run(
        self, row: list[Any], evaluate: Evaluate
    ) -> Iterator[tuple[tuple[str, str], tuple[str, ...], list[Any]]]:
        """Change a row as the triggers before it do. Yield the rows for other tables: database and
        name, columns, values."""
        names = {c.name.lower(): n for n, c in enumerate(self._table.columns)}
        for action in (*self._before, *self._after):
            values = [_value(text, row, names, evaluate) for text in action.values]
            if action.table is None:
                for column, value in zip(action.columns, values, strict=True):
                    row[names[column.lower()]] = value
            else:
                yield action.table, action.columns, values


def _actions(trigger: tuple[str, str, str], table: Table) -> Iterator[_Action]:
    name, _, body = trigger
    reader = TokenReader(body, reserved=False)
    if reader.accept("BEGIN") and reader.tokens[-1].upper == "END":
        reader.tokens = reader.tokens[:-1]
    while not reader.done:
        if reader.accept(";"):
            continue
        if reader.accept("SET"):
            yield from _assignments(reader)
        elif reader.accept("INSERT", "INTO"):
            yield _inserted_row(reader)
        else:
            raise SqlDataError(
                f"the trigger {name} would run for rows of {table.name}, and the embedded engine "
                "runs only triggers of SET and INSERT: move it behind the rows, or take "
                "engine='mysql'"
            )


def _assignments(reader: TokenReader) -> Iterator[_Action]:
    while True:
        reader.expect("NEW", ".")
        column = reader.name()
        reader.expect_any("=", ":=")
        yield _Action(None, (column,), (_expression(reader),))
        if not reader.accept(","):
            return


def _inserted_row(reader: TokenReader) -> _Action:
    target = reader.names()
    columns = reader.bracketed_names()
    reader.expect_any("VALUES", "VALUE")
    reader.expect("(")
    values = [_expression(reader)]
    while reader.accept(","):
        values.append(_expression(reader))
    reader.expect(")")
    return _Action(target, columns, tuple(values))


def _expression(reader: TokenReader) -> str:
    """Return the text up to the next comma, semicolon or closing bracket of this level."""
    start = reader.token.start
    depth = 0
    end = start
    while not reader.done and (depth or reader.token.text not in (",", ")", ";")):
        token = reader.take()
        depth += (token.text == "(") - (token.text == ")")
        end = token.end
    return reader.code[start:end]


def _value(text: str, row: list[Any], names: dict[str, int], evaluate: Evaluate) -> Any:
    """Return the value of an expression over ``NEW.column``."""
    reader = TokenReader(text, reserved=False)
    out, end = "", 0
    while not reader.done:
        start = reader.token.start
        if reader.accept("NEW", "."):
            value = row[names[reader.name().lower()]]
            if start == 0 and reader.done:
                return value
            out += text[end:start] + MYSQL_LITERALS.literal(value)
            end = reader.tokens[reader.at - 1].end
        else:
            reader.take()
    return evaluate(out + text[end:])
