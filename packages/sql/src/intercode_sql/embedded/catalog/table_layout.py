"""The layout of MySQL's tables in SQLite: rows in the order of InnoDB's primary key."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from intercode_sql.embedded.catalog import collations
from intercode_sql.embedded.catalog.catalog import Column, Table
from intercode_sql.literals import quoted_name

_SQLITE_TYPES = {"int": "INTEGER", "year": "INTEGER", "bytes": "BLOB"}


def store_in_key_order(connection: sqlite3.Connection, table: Table, schema: str) -> Table:
    """Move the rows of ``raw <name>`` into the table in the order of the primary key, and create
    its indexes.

    Returns the table with its number of rows and the measured ``Type.plain`` of its columns.
    ``schema`` is SQLite's name of the database, quoted and with a dot.
    """
    raw = schema + quoted_name("raw " + table.name)
    generated = {name for name, _, _ in table.generated}  # they have no values yet
    columns = tuple(
        c
        if c.name.lower() in generated or c.type.kind != "string"
        else plain_column(c, _texts(connection, raw, c), 2)
        for c in table.columns
    )
    table = replace(table, columns=columns)
    connection.execute(create_table_sql(table, schema))
    names = ", ".join(quoted_name(c.name) for c in table.columns)
    order = ", ".join(
        f"{quoted_name(c.name)}{collations.collate_clause(True, c.type)}"
        for c in _named_columns(table, table.primary)
    )
    by = f"{order}, {table.rowid_name}" if order else table.rowid_name
    target = schema + quoted_name(table.name)
    connection.execute(f"INSERT INTO {target} ({names}) SELECT {names} FROM {raw} ORDER BY {by}")
    connection.execute(f"DROP TABLE {raw}")
    for statement in create_index_sql(table, schema):
        connection.execute(statement)
    rows, last = connection.execute(
        f"SELECT COUNT(*), MAX({table.rowid_name}) FROM {target}"
    ).fetchone()
    table = replace(table, auto_increment=_next_number(connection, table, target))
    return replace(
        _with_index_statistics(connection, table, target, rows), rows=rows, last=last or 0
    )


def _next_number(connection: sqlite3.Connection, table: Table, target: str) -> int | None:
    """Return the next value of the AUTO_INCREMENT column: above those that are there, and at least
    the one that the table declares."""
    auto = next((c for c in table.columns if c.auto), None)
    if auto is None:
        return None
    most = connection.execute(f"SELECT MAX({quoted_name(auto.name)}) FROM {target}").fetchone()
    return max(table.auto_increment or 1, int(most[0] or 0) + 1)


def _with_index_statistics(
    connection: sqlite3.Connection, table: Table, target: str, rows: int
) -> Table:
    """Return the table with the number of rows per key."""
    indexes = []
    for index in table.indexes:
        (column,) = _named_columns(table, index.columns[:1])
        shown = quoted_name(column.name) + collations.collate_clause(False, column.type)
        (values,) = connection.execute(f"SELECT COUNT(DISTINCT {shown}) FROM {target}").fetchone()
        indexes.append(replace(index, per_key=rows / values if values else 1.0))
    return replace(table, indexes=tuple(indexes))


def _named_columns(table: Table, names: Sequence[str]) -> list[Column]:
    return [c for n in names if (c := table.column(n)) is not None]


def _texts(connection: sqlite3.Connection, raw: str, column: Column) -> Iterator[str | None]:
    query = f"SELECT DISTINCT {quoted_name(column.name)} FROM {raw}"
    return (text for (text,) in connection.execute(query))


def plain_column(column: Column, texts: Iterable[str | None], plain: int) -> Column:
    """Return a column of texts with the ``Type.plain`` of these texts, at most ``plain``."""
    for text in texts:
        if text is not None:
            plain = min(plain, collations.nocase_level(text, column.type.collation))
        if not plain:
            break
    return replace(column, type=replace(column.type, plain=plain))


def create_table_sql(table: Table, schema: str) -> str:
    """Return SQLite's statement that creates the table."""
    key = table.rowid_key
    lines = []
    for column in table.columns:
        kind = _SQLITE_TYPES.get(column.type.kind, "REAL" if column.type.number else "TEXT")
        primary = " PRIMARY KEY" if column.name == key else ""
        clause = collations.collate_clause(False, column.type)
        lines.append(f"{quoted_name(column.name)} {kind}{primary}{clause}")
    return f"CREATE TABLE {schema}{quoted_name(table.name)} ({', '.join(lines)})"


def create_index_sql(table: Table, schema: str) -> list[str]:
    """Return SQLite's statements that create the table's indexes."""
    out = []
    for index in table.indexes:
        if index.primary and table.rowid_key:
            continue
        cut = any(index.prefixes)
        if cut and index.unique:
            continue
        parts = ", ".join(
            f"{quoted_name(c.name)}{collations.collate_clause(False, c.type)}"
            for c in _named_columns(table, index.columns)
        )
        unique = "UNIQUE " * index.unique
        name = schema + quoted_name(f"{table.name}.{index.name}")
        out.append(f"CREATE {unique}INDEX {name} ON {quoted_name(table.name)} ({parts})")
    return out
