"""ALTER TABLE: creates the changed table and copies the rows into it."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from intercode_sql.dialect.errors import mysql_error, unsupported
from intercode_sql.embedded.catalog.catalog import Column, Table, quote_schema, quote_table
from intercode_sql.embedded.catalog.table_layout import store_in_key_order
from intercode_sql.embedded.catalog.table_statements import (
    AlteredTable,
    altered_table,
    read_alter_table,
)
from intercode_sql.embedded.catalog.values import default_value, result_converter, to_stored
from intercode_sql.embedded.execute import transactions
from intercode_sql.embedded.execute.context import SessionContext
from intercode_sql.embedded.execute.dml import duplicate_key_error
from intercode_sql.embedded.execute.transactions import write_transaction
from intercode_sql.embedded.execute.write_targets import named_table, record_drop, record_table
from intercode_sql.literals import quoted_name


def alter_table(code: str, session: SessionContext) -> None:
    """Execute ALTER TABLE. Raises StatementError as MySQL does, or for an unsupported action."""
    names, reader = read_alter_table(code)
    database, table = named_table(names, session)
    plan = altered_table(table, reader)
    after = plan.table
    if after.name != table.name and session.state.catalog.table(database, after.name):
        raise mysql_error(1050, after.name)
    for child in session.state.catalog.databases[database].values():
        if after.name != table.name and any(k.refers_to(table.name) for k in child.foreign_keys):
            raise unsupported("RENAME of a table that foreign keys point to")
    with write_transaction(session, database) as connection:
        rows = migrate_rows(connection, database, table, plan, session.compile_context().now)
        connection.execute(f"DROP TABLE {quote_table(database, table.name)}")
        after = rebuild_table(connection, database, after, rows)
    if after.name != table.name:
        record_drop(session, database, table.name)
    record_table(session, database, after, "changed" if after.name == table.name else "new")
    transactions.commit(session)


def migrate_rows(
    connection: sqlite3.Connection,
    database: str,
    before: Table,
    plan: AlteredTable,
    now: str,
    stored_name: str = "",
) -> list[tuple[Any, ...]]:
    """Return the old rows with the new columns. ``stored_name`` is the old table's name in SQLite,
    if it differs."""
    after, origins = plan.table, plan.origins
    names = [c.name for c in before.columns]
    column_list = ", ".join(quoted_name(n) for n in names)
    source = quote_table(database, stored_name or before.name)
    rows = connection.execute(
        f"SELECT {column_list} FROM {source} ORDER BY {before.rowid_name}"
    ).fetchall()
    out = []
    for row_number, row in enumerate(rows, 1):
        old = dict(zip(names, row, strict=True))
        out.append(
            tuple(_migrated_value(old, c, before, origins, now, row_number) for c in after.columns)
        )
    return out


def _migrated_value(
    old: dict[str, Any],
    column: Column,
    before: Table,
    origins: Mapping[str, str | None],
    now: str,
    row_number: int,
) -> Any:
    origin = origins.get(column.name.lower())
    if origin is None:
        return row_number if column.auto else _new_column_value(column, now)
    source = before.column(origin)
    value = old[origin]
    if source is None or source.declared == column.declared or value is None:
        return value
    read = result_converter(source.type)
    return value if read is None else read(value)


def _new_column_value(column: Column, now: str) -> Any:
    """Return the value of a new column in existing rows: its default, or an empty value."""
    if column.computed or column.default is not None or column.nullable:
        return default_value(column, now)
    if column.type.moment:
        raise unsupported("ADD COLUMN of a date that is NOT NULL and has no default")
    return 0 if column.type.number else ""


def rebuild_table(
    connection: sqlite3.Connection,
    database: str,
    table: Table,
    rows: Sequence[tuple[Any, ...]] | None,
) -> Table:
    """Create a table with these rows (None: its current rows). Raises StatementError 1062, and
    those of values that do not fit."""
    schema = quote_schema(database) + "."
    if rows is None:
        names = ", ".join(quoted_name(c.name) for c in table.columns)
        rows = connection.execute(
            f"SELECT {names} FROM {schema}{quoted_name(table.name)}"
        ).fetchall()
        connection.execute(f"DROP TABLE {schema}{quoted_name(table.name)}")
    raw = schema + quoted_name("raw " + table.name)
    columns = ", ".join(quoted_name(c.name) for c in table.columns)
    connection.execute(f"CREATE TABLE {raw} ({columns})")
    placeholders = ", ".join("?" * len(table.columns))
    connection.executemany(
        f"INSERT INTO {raw} VALUES ({placeholders})",
        [
            [to_stored(v, c, row_number) for v, c in zip(row, table.columns, strict=True)]
            for row_number, row in enumerate(rows, 1)
        ],
    )
    try:
        return store_in_key_order(connection, table, schema)
    except sqlite3.IntegrityError as e:
        raise duplicate_key_error({}, table, e) from e
