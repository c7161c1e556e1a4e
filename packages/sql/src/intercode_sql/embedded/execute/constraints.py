"""Generated columns, CHECK and triggers of the rows that a statement writes, and the rows that have
their keys already."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlglot import exp

from intercode_sql.dialect.errors import StatementError, mysql_error, unsupported
from intercode_sql.dialect.parser import FUNCTION_MARK, parse
from intercode_sql.embedded.catalog.catalog import Column, Table, quote_table
from intercode_sql.embedded.catalog.collations import collate_clause
from intercode_sql.embedded.catalog.values import result_converter, to_stored
from intercode_sql.embedded.compile.conversions import compile_condition
from intercode_sql.embedded.compile.queries import root_scope
from intercode_sql.embedded.compile.scope import Scope, Source, compile_scalar
from intercode_sql.embedded.compile.sources import base_table_source
from intercode_sql.embedded.execute.context import SessionContext
from intercode_sql.literals import quoted_name

_ROWS_AT_ONCE = 500
Row = Mapping[str, Any]


def require_no_trigger(table: Table, event: str) -> None:
    """Raise StatementError if a trigger would run. This engine keeps triggers and does not run
    them."""
    for name, moment, _ in table.triggers:
        if moment.endswith(event):
            raise unsupported(f"{event} in the table {table.name}, which has the trigger {name}")


def require_not_generated(columns: Sequence[Column], table: Table) -> None:
    """Raise StatementError 3105 if a generated column is among these."""
    generated = {name for name, _, _ in table.generated}
    for column in columns:
        if column.name.lower() in generated:
            raise mysql_error(3105, column.name, table.name)


def apply_constraints(
    rowids: Sequence[int] | None,
    table: Table,
    database: str,
    session: SessionContext,
    connection: sqlite3.Connection,
) -> None:
    """Compute the generated columns of these rows (None: of all), and check the conditions of
    these rows.

    Raises StatementError 3819 for a row that violates one.
    """
    if not (table.generated or table.checks) or rowids == []:
        return
    context = session.compile_context()
    scope = Scope(context, parent=root_scope(context))
    source = base_table_source(table, database, table.name, scope)
    scope.sources.append(source)
    scope.clause = "where"
    for name, text, _ in table.generated:
        _compute_column(name, _expression(text), rowids, table, database, scope, connection)
    for name, text in table.checks if rowids is not None else ():
        condition = compile_condition(exp.Not(this=exp.Paren(this=_expression(text))), scope)
        for place in _where_clauses(rowids, table, source):
            query = f"SELECT 1 FROM {source.sql()}{place} AND ({condition}) LIMIT 1"
            if connection.execute(query).fetchone():
                raise mysql_error(3819, name)


def violates_check(
    rowid: int, table: Table, database: str, session: SessionContext, connection: sqlite3.Connection
) -> bool:
    """Return whether a row violates a condition of its table."""
    if not table.checks:
        return False
    try:
        apply_constraints([rowid], table, database, session, connection)
    except StatementError as e:
        if e.number != 3819:
            raise
        return True
    return False


def _expression(text: str) -> exp.Expr:
    found: exp.Expr = parse(f"SELECT {text}").expressions[0].copy()
    return found.this if isinstance(found, exp.Alias) else found


def _where_clauses(rowids: Sequence[int] | None, table: Table, source: Source) -> Iterator[str]:
    """Yield the WHERE clauses that select these rows."""
    if rowids is None:
        yield " WHERE 1"
        return
    for start in range(0, len(rowids), _ROWS_AT_ONCE):
        listed = ", ".join(map(str, rowids[start : start + _ROWS_AT_ONCE]))
        yield f" WHERE {source.alias}.{table.rowid_name} IN ({listed})"


def _compute_column(
    name: str,
    expression: exp.Expr,
    rowids: Sequence[int] | None,
    table: Table,
    database: str,
    scope: Scope,
    connection: sqlite3.Connection,
) -> None:
    column = table.column(name)
    if column is None:
        return
    source = scope.sources[0]
    compiled = compile_scalar(expression, scope)
    read = result_converter(compiled.type)
    target = quote_table(database, table.name)
    for place in _where_clauses(rowids, table, source):
        rows = connection.execute(
            f"SELECT {source.alias}.{table.rowid_name}, {compiled.sql} FROM {source.sql()}{place}"
        ).fetchall()
        connection.executemany(
            f"UPDATE {target} SET {quoted_name(column.name)} = ? WHERE {table.rowid_name} = ?",
            [
                (to_stored(v if v is None or read is None else read(v), column, n), rowid)
                for n, (rowid, v) in enumerate(rows, 1)
            ],
        )


# ---------------------------------------------------------------- rows with the same key
def rows_with_same_key(
    row: Row, table: Table, database: str, connection: sqlite3.Connection
) -> list[int]:
    """Return the ids of the rows that have a unique key of this row, by the order of the keys."""
    found: list[int] = []
    low = {name.lower(): value for name, value in row.items()}
    for index in table.indexes:
        columns = [c for n in index.columns if (c := table.column(n)) is not None]
        values = [low.get(c.name.lower()) for c in columns]
        if not index.unique or None in values or any(index.prefixes):
            continue
        tests = " AND ".join(
            f"{quoted_name(c.name)} = ?{collate_clause(False, c.type)}" for c in columns
        )
        target = quote_table(database, table.name)
        for (rowid,) in connection.execute(
            f"SELECT {table.rowid_name} FROM {target} WHERE {tests}", values
        ):
            if rowid not in found:
                found.append(rowid)
    return found


def duplicate_assignments(
    duplicate: exp.Expr, row: Row, alias: str, table: Table
) -> list[exp.Expr]:
    """Return the assignments of ON DUPLICATE KEY UPDATE with the values of the new row in place of
    ``VALUES(column)`` and of the columns of its alias."""

    def filled(node: exp.Expr) -> exp.Expr:
        name = str(node.this) if isinstance(node, exp.Anonymous) else ""
        if name.removeprefix(FUNCTION_MARK).upper() == "VALUES" and len(node.expressions) == 1:
            return _literal(_new_value(node.expressions[0].name, row, table))
        if isinstance(node, exp.Column) and alias and node.table.lower() == alias.lower():
            return _literal(_new_value(node.name, row, table))
        return node

    return [
        exp.EQ(this=e.this.copy(), expression=e.expression.copy().transform(filled))
        for e in duplicate.expressions
    ]


def _new_value(name: str, row: Row, table: Table) -> Any:
    column: Column | None = table.column(name)
    if column is None:
        raise mysql_error(1054, name, "field list")
    value = row[column.name]
    return (
        _Double(value) if value is not None and column.type.kind in ("float", "double") else value
    )


class _Double(float):
    """A value that is no exact decimal."""


def _literal(value: Any) -> exp.Expr:
    if value is None:
        return exp.Null()
    if isinstance(value, bytes):
        return exp.HexString(this=value.hex())
    if isinstance(value, (int, float)):
        text = float.__repr__(abs(value)) if isinstance(value, float) else repr(abs(value))
        text += "e0" if isinstance(value, _Double) and "e" not in text else ""
        number = exp.Literal.number(text)
        return exp.Neg(this=number) if value < 0 else number
    return exp.Literal.string(str(value))


def alias_of_new_row(source: exp.Expr | None) -> str:
    """Return the alias of ``VALUES (...) AS new``, or an empty string."""
    alias = source.args.get("alias") if isinstance(source, exp.Values) else None
    return alias.name if isinstance(alias, exp.TableAlias) else ""
