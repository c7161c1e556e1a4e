"""INSERT, REPLACE, UPDATE and DELETE. All rows are computed first, then written in a
transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sqlglot import exp

from intercode.sql.dialect.errors import mysql_error, unsupported
from intercode.sql.embedded.catalog.catalog import Column, Table, quote_identifier
from intercode.sql.embedded.catalog.values import convert_rows, default_value, error_text, to_stored
from intercode.sql.embedded.compile.conversions import number_constant
from intercode.sql.embedded.compile.translation import translate
from intercode.sql.embedded.execute import foreign_keys
from intercode.sql.embedded.execute.context import SessionContext
from intercode.sql.embedded.execute.write_targets import (
    record_write,
    select_target_rows,
    target_table,
)

Row = dict[str, Any]


@contextmanager
def write_transaction(session: SessionContext, database: str) -> Iterator[sqlite3.Connection]:
    """Run a transaction in the session's private copy of a database. It is rolled back on an
    error."""
    session.connection.make_private(database, session.limits.storage)
    session.connection.attach([database])
    connection = session.connection.sqlite
    connection.execute("BEGIN")
    try:
        yield connection
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def insert(tree: exp.Insert, session: SessionContext, replacing: bool = False) -> None:
    """Execute INSERT or REPLACE. Raises StatementError as MySQL's strict mode does."""
    schema = tree.this
    has_column_list = isinstance(schema, exp.Schema)
    database, table = target_table(schema.this if has_column_list else schema, session)
    names = (
        [c.name for c in schema.expressions] if has_column_list else [c.name for c in table.columns]
    )
    columns = [_column(table, n) for n in names]
    if len({c.name for c in columns}) < len(columns):
        raise mysql_error(1110, next(n for n in names if names.count(n) > 1))
    rows = _insert_rows(tree, columns, table, session)
    duplicate = tree.args.get("conflict")
    ignore = bool(tree.args.get("ignore"))
    if replacing and any(True for _ in foreign_keys.referencing_tables(table, database, session)):
        raise unsupported("REPLACE in a table that foreign keys point to")
    complete_rows = [_complete_row(r, table, session, n) for n, r in enumerate(rows, 1)]
    counter, first = table.auto_increment, None
    written = 0
    with write_transaction(session, database) as connection:
        for row in complete_rows:
            counter, value = _assign_auto_increment(row, table, counter)
            first = value if first is None else first
            foreign_keys.check_child(row, table, database, session, connection)
            written += _insert_row(row, table, database, connection, replacing, ignore, duplicate)
        source = f"{quote_identifier(database)}.{quote_identifier(table.name)}"
        (last,) = connection.execute(f"SELECT MAX(rowid) FROM {source}").fetchone()
        rows_now = table.rows + written
        table = replace(table, auto_increment=counter, rows=rows_now, last=last or 0)
    session.set_session_values(ROW_COUNT=written, LAST_INSERT_ID=first or 0)
    record_write(session, database, table, complete_rows if written else [])


def _column(table: Table, name: str) -> Column:
    column = table.column(name)
    if column is None:
        raise mysql_error(1054, name, "field list")
    return column


def _insert_rows(
    tree: exp.Insert, columns: Sequence[Column], table: Table, session: SessionContext
) -> list[Row]:
    source = tree.args.get("expression")
    if isinstance(source, exp.Values):
        out = []
        for number_, item in enumerate(source.expressions, 1):
            values = item.expressions if isinstance(item, exp.Tuple) else [item]
            if len(values) != len(columns) and values:
                raise mysql_error(1136, number_)
            out.append(
                {
                    c.name: _insert_value(v, c, session)
                    for c, v in zip(columns, values, strict=False)
                }
            )
        return out
    if not isinstance(source, exp.Query):
        raise unsupported("INSERT in this form")
    found = translate(source, session.compile_context())
    if len(found.types) != len(columns):
        raise mysql_error(1136, 1)
    rows = convert_rows(session.rows(found), found.converters)
    return [{c.name: v for c, v in zip(columns, row, strict=True)} for row in rows]


_DEFAULT_VALUE = object()


def _insert_value(node: exp.Expr, column: Column, session: SessionContext) -> Any:
    """Return the value of one expression of VALUES."""
    if isinstance(node, exp.Var) and node.name.upper() == "DEFAULT":
        return _DEFAULT_VALUE
    if isinstance(node, exp.Column) and node.name.upper() == "DEFAULT" and not node.table:
        return _DEFAULT_VALUE
    if isinstance(node, exp.Literal):
        return node.this if node.is_string else _number_value(node.this)
    if isinstance(node, exp.Null):
        return None
    found = translate(exp.select(node.copy()), session.compile_context())
    (row,) = convert_rows(session.rows(found), found.converters)
    return row[0]


def _number_value(text: str) -> Any:
    number_constant(text)
    return int(text) if text.isdigit() else text


def _complete_row(row: Row, table: Table, session: SessionContext, row_number: int) -> Row:
    """Return a row with its defaults, and with values in their stored form."""
    if "STRICT_TRANS_TABLES" not in str(session.setting("sql_mode")):
        raise unsupported("writing without sql_mode STRICT_TRANS_TABLES")
    now = session.compile_context().now
    out: Row = {}
    for column in table.columns:
        value = row.get(column.name, _DEFAULT_VALUE)
        if value is _DEFAULT_VALUE:
            value = default_value(column, now)
        out[column.name] = to_stored(value, column, row_number)
    return out


def _assign_auto_increment(
    row: Row, table: Table, counter: int | None
) -> tuple[int | None, int | None]:
    """Assign the row's AUTO_INCREMENT value. Return the next counter, and the value if one was
    generated."""
    auto = next((c for c in table.columns if c.auto), None)
    if auto is None or counter is None:
        return counter, None
    value = row[auto.name]
    if value is None or value == 0:
        row[auto.name] = counter
        return counter + 1, counter
    return max(counter, int(value) + 1), None


def _insert_row(
    row: Row,
    table: Table,
    database: str,
    connection: sqlite3.Connection,
    replacing: bool,
    ignore: bool,
    duplicate: exp.Expr | None,
) -> int:
    columns = ", ".join(quote_identifier(c) for c in row)
    placeholders = ", ".join("?" * len(row))
    word = "INSERT OR REPLACE" if replacing else "INSERT OR IGNORE" if ignore else "INSERT"
    target = f"{quote_identifier(database)}.{quote_identifier(table.name)}"
    try:
        done = connection.execute(
            f"{word} INTO {target} ({columns}) VALUES ({placeholders})", list(row.values())
        )
    except sqlite3.IntegrityError as e:
        if duplicate is not None:
            raise unsupported("ON DUPLICATE KEY UPDATE of an existing row") from e
        raise duplicate_key_error(row, table, e) from e
    return done.rowcount


def duplicate_key_error(
    row: Mapping[str, Any], table: Table, error: sqlite3.IntegrityError
) -> Exception:
    """Return MySQL's error 1062 for SQLite's error about a duplicate key."""
    text = str(error)
    for index in table.indexes:
        full = ", ".join(f"{table.name}.{c}" for c in index.columns)
        if index.unique and (text.endswith(f": {full}") or f"{table.name}.{index.name}" in text):
            entry = "-".join(error_text(row.get(c)) for c in index.columns)
            return mysql_error(1062, entry, f"{table.name}.{index.name}")
    return unsupported(f"this row (SQLite says: {text})")


# ---------------------------------------------------------------- UPDATE and DELETE
def update(tree: exp.Update, session: SessionContext) -> None:
    """Execute UPDATE of one table."""
    if (
        not isinstance(tree.this, exp.Table)
        or tree.this.args.get("joins")
        or tree.args.get("from_")
    ):
        raise unsupported("UPDATE of several tables")
    database, table = target_table(tree.this, session)
    pairs = [(e.this, e.expression) for e in tree.expressions]
    columns = [_column(table, left.name) for left, _ in pairs]
    _check_assignment_order(columns, [right for _, right in pairs])
    rows = select_target_rows(
        tree, table, database, session, [right for _, right in pairs], columns
    )
    updated_rows: list[Row] = []
    with write_transaction(session, database) as connection:
        for row_number, (rowid, old, values) in enumerate(rows, 1):
            new = {
                c.name: to_stored(v, c, row_number) for c, v in zip(columns, values, strict=True)
            }
            changed = {k: v for k, v in new.items() if old[k] != v}
            if not changed:
                continue
            for column in table.columns:
                if column.on_update and column.name not in changed:
                    changed[column.name] = session.compile_context().now
            row = {**old, **changed}
            foreign_keys.check_child(row, table, database, session, connection, set(changed))
            foreign_keys.check_parent(old, table, database, session, connection, set(changed))
            _update_row(rowid, changed, row, table, database, connection)
            updated_rows.append(row)
    session.set_session_values(ROW_COUNT=len(updated_rows))
    record_write(session, database, table, updated_rows)


def _check_assignment_order(columns: Sequence[Column], values: Sequence[exp.Expr]) -> None:
    """Reject assignments that depend on earlier ones. MySQL evaluates them in order; this engine
    computes all from the old row."""
    for position, value in enumerate(values):
        names = {c.name.lower() for c in value.find_all(exp.Column)}
        if any(c.name.lower() in names for c in columns[:position]):
            raise unsupported("UPDATE with a value that depends on an assignment before it")


def _update_row(
    rowid: int, changed: Row, row: Row, table: Table, database: str, connection: sqlite3.Connection
) -> None:
    sets = ", ".join(f"{quote_identifier(c)} = ?" for c in changed)
    target = f"{quote_identifier(database)}.{quote_identifier(table.name)}"
    try:
        connection.execute(
            f"UPDATE {target} SET {sets} WHERE rowid = ?", [*changed.values(), rowid]
        )
    except sqlite3.IntegrityError as e:
        raise duplicate_key_error(row, table, e) from e


def delete(tree: exp.Delete, session: SessionContext) -> None:
    """Execute DELETE from one table."""
    if tree.args.get("tables") or tree.args.get("using") or tree.this.args.get("joins"):
        raise unsupported("DELETE from several tables")
    database, table = target_table(tree.this, session)
    rows = select_target_rows(tree, table, database, session, [], [])
    target = f"{quote_identifier(database)}.{quote_identifier(table.name)}"
    touched: set[str] = set()
    with write_transaction(session, database) as connection:
        for rowid, old, _ in rows:
            touched |= foreign_keys.apply_on_delete(old, table, database, session, connection)
            connection.execute(f"DELETE FROM {target} WHERE rowid = ?", [rowid])
    session.set_session_values(ROW_COUNT=len(rows))
    if rows:
        record_write(session, database, replace(table, rows=max(0, table.rows - len(rows))), [{}])
    for name in touched:
        child = session.state.catalog.table(database, name)
        if child is not None:
            record_write(session, database, child, [{}])
