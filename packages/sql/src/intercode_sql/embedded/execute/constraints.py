"""Constraints of the rows that a statement writes: generated columns, CHECK, triggers and foreign
keys; and the rows that have their keys already."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlglot import exp

from intercode_sql.dialect.errors import StatementError, mysql_error, unsupported
from intercode_sql.dialect.parser import FUNCTION_MARK, parse
from intercode_sql.embedded.catalog.catalog import Column, ForeignKey, Table, quote_table
from intercode_sql.embedded.catalog.collations import collate_clause
from intercode_sql.embedded.catalog.values import result_converter, to_stored
from intercode_sql.embedded.compile.conversions import compile_condition
from intercode_sql.embedded.compile.model import Scope, Source, compile_scalar
from intercode_sql.embedded.compile.queries import root_scope
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


def _checks_enabled(session: SessionContext) -> bool:
    return str(session.setting("foreign_key_checks")) not in ("0", "OFF")


def _constraint_text(key: ForeignKey, database: str, child: str) -> str:
    return f"`{database}`.`{child}`, {key.definition}"


def _matching_rows(
    connection: sqlite3.Connection, database: str, table: Table, names: tuple[str, ...], values: Any
) -> list[tuple[Any, ...]]:
    """Return the rows with these values in these columns: rowid, then all columns."""
    columns = [table.column(n) for n in names]
    tests = " AND ".join(
        f"{quoted_name(c.name)} = ?{collate_clause(False, c.type)}"
        for c in columns
        if c is not None
    )
    column_list = ", ".join(quoted_name(c.name) for c in table.columns)
    source = quote_table(database, table.name)
    return connection.execute(
        f"SELECT {table.rowid_name}, {column_list} FROM {source} WHERE {tests}", list(values)
    ).fetchall()


def check_child(
    row: Row,
    table: Table,
    database: str,
    session: SessionContext,
    connection: sqlite3.Connection,
    changed: set[str] | None = None,
) -> None:
    """Raise StatementError 1452 if a row refers to a parent row that does not exist."""
    if not _checks_enabled(session):
        return
    low = {k.lower(): v for k, v in row.items()}
    changed_names = None if changed is None else {c.lower() for c in changed}
    for key in table.foreign_keys:
        values = [low[c.lower()] for c in key.columns]
        if None in values or (
            changed_names is not None and changed_names.isdisjoint(c.lower() for c in key.columns)
        ):
            continue
        parent = session.state.catalog.table(database, key.parent)
        if parent is not None and parent.name == table.name:
            parent = table
            if [low.get(c.lower()) for c in key.parent_columns] == values:
                continue
        if parent is None or not _matching_rows(
            connection, database, parent, key.parent_columns, values
        ):
            raise mysql_error(1452, _constraint_text(key, database, table.name))


def referencing_tables(
    table: Table, database: str, session: SessionContext
) -> Iterator[tuple[Table, ForeignKey]]:
    """Yield the tables and foreign keys that refer to a table, if foreign keys are checked."""
    if not _checks_enabled(session):
        return
    for child in session.state.catalog.databases[database].values():
        for key in child.foreign_keys:
            if key.refers_to(table.name):
                yield child, key


def apply_on_update(
    old: Row,
    new: Row,
    table: Table,
    database: str,
    session: SessionContext,
    connection: sqlite3.Connection,
    updated: tuple[str, ...] = (),
) -> set[str]:
    """Apply ON UPDATE to the rows that refer to a row whose key changes: error 1451, CASCADE or SET
    NULL. A table that the statement or a cascade has updated before is not updated again.

    Returns the names of the tables that changed.
    """
    changed_tables: set[str] = set()
    low, updated = {k.lower(): v for k, v in old.items()}, (*updated, table.name)
    later = {k.lower(): v for k, v in new.items()}
    for child, key in referencing_tables(table, database, session):
        names = [c.lower() for c in key.parent_columns]
        before, after = [low[n] for n in names], [later[n] for n in names]
        if before == after or None in before:
            continue
        target = quote_table(database, child.name)
        for row in _matching_rows(connection, database, child, key.columns, before):
            if key.on_update not in ("CASCADE", "SET NULL") or child.name in updated:
                raise mysql_error(1451, _constraint_text(key, database, child.name))
            values = after if key.on_update == "CASCADE" else [None] * len(after)
            columns = [c.name for n in key.columns if (c := child.column(n)) is not None]
            inner = dict(zip([c.name for c in child.columns], row[1:], strict=True))
            written = {**inner, **dict(zip(columns, values, strict=True))}
            changed_tables |= apply_on_update(
                inner, written, child, database, session, connection, updated
            )
            sets = ", ".join(f"{quoted_name(c)} = ?" for c in columns)
            connection.execute(
                f"UPDATE {target} SET {sets} WHERE {child.rowid_name} = ?", [*values, row[0]]
            )
            changed_tables.add(child.name)
    return changed_tables


def apply_on_delete(
    old: Row,
    table: Table,
    database: str,
    session: SessionContext,
    connection: sqlite3.Connection,
    depth: int = 0,
) -> set[str]:
    """Apply ON DELETE to the rows that refer to a deleted row: error 1451, CASCADE or SET NULL.

    Returns the names of the tables that changed.
    """
    changed_tables: set[str] = set()
    if depth > 15:
        raise unsupported("foreign keys that cascade more than 15 times")
    low = {k.lower(): v for k, v in old.items()}
    for child, key in referencing_tables(table, database, session):
        values = [low[c.lower()] for c in key.parent_columns]
        target = quote_table(database, child.name)
        names = [c.name for c in child.columns]
        for row in _matching_rows(connection, database, child, key.columns, values):
            inner = dict(zip(names, row[1:], strict=True))
            if key.on_delete == "CASCADE":
                changed_tables |= apply_on_delete(
                    inner, child, database, session, connection, depth + 1
                )
                connection.execute(f"DELETE FROM {target} WHERE {child.rowid_name} = ?", [row[0]])
            elif key.on_delete == "SET NULL":
                sets = ", ".join(f"{quoted_name(c)} = NULL" for c in key.columns)
                connection.execute(
                    f"UPDATE {target} SET {sets} WHERE {child.rowid_name} = ?", [row[0]]
                )
            else:
                raise mysql_error(1451, _constraint_text(key, database, child.name))
            changed_tables.add(child.name)
    return changed_tables
