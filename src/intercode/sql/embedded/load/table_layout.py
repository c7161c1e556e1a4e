"""How a table of MySQL's lies in SQLite: its rows in the order of InnoDB's primary key."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from intercode.sql.embedded.catalog import collations
from intercode.sql.embedded.catalog.catalog import Column, Table, ident

_SQLITE = {"int": "INTEGER", "year": "INTEGER", "bytes": "BLOB"}


def lay_out(connection: sqlite3.Connection, table: Table, schema: str = "") -> Table:
    """Move the rows of ``raw <name>`` into the table itself, in the order of the primary key, with
    its indexes. Returns the table with what its rows tell: their number, how plain their text.

    ``schema``: of SQLite's, quoted and with a point.
    """
    raw = schema + ident("raw " + table.name)
    columns = tuple(_measured(connection, raw, c) for c in table.columns)
    table = replace(table, columns=columns)
    connection.execute(creation(table, schema))
    names = ", ".join(ident(c.name) for c in table.columns)
    order = ", ".join(
        f"{ident(c.name)}{collations.collate(True, c.type)}" for c in _columns(table, table.primary)
    )
    by = f"{order}, rowid" if order else "rowid"
    target = schema + ident(table.name)
    connection.execute(f"INSERT INTO {target} ({names}) SELECT {names} FROM {raw} ORDER BY {by}")
    connection.execute(f"DROP TABLE {raw}")
    for statement in indexing(table, schema):
        connection.execute(statement)
    rows, last = connection.execute(f"SELECT COUNT(*), MAX(rowid) FROM {target}").fetchone()
    return replace(_counted(connection, table, target, rows), rows=rows, last=last or 0)


def _counted(connection: sqlite3.Connection, table: Table, target: str, rows: int) -> Table:
    """The table with how many rows share a key."""
    indexes = []
    for index in table.indexes:
        (column,) = _columns(table, index.columns[:1])
        shown = ident(column.name) + collations.collate(False, column.type)
        (values,) = connection.execute(f"SELECT COUNT(DISTINCT {shown}) FROM {target}").fetchone()
        indexes.append(replace(index, per_key=rows / values if values else 1.0))
    return replace(table, indexes=tuple(indexes))


def _columns(table: Table, names: Sequence[str]) -> list[Column]:
    return [c for n in names if (c := table.column(n)) is not None]


def _measured(connection: sqlite3.Connection, raw: str, column: Column) -> Column:
    if column.type.kind != "string":
        return column
    plain = 2
    for (text,) in connection.execute(f"SELECT DISTINCT {ident(column.name)} FROM {raw}"):
        if text is not None:
            plain = min(plain, collations.plainness(text, column.type.collation))
        if not plain:
            break
    return replace(column, type=replace(column.type, plain=plain))


def creation(table: Table, schema: str = "") -> str:
    """SQLite's statement that makes the table."""
    key = table.rowid_key
    lines = []
    for column in table.columns:
        kind = _SQLITE.get(column.type.kind, "REAL" if column.type.number else "TEXT")
        primary = " PRIMARY KEY" if column.name == key else ""
        lines.append(
            f"{ident(column.name)} {kind}{primary}{collations.collate(False, column.type)}"
        )
    return f"CREATE TABLE {schema}{ident(table.name)} ({', '.join(lines)})"


def indexing(table: Table, schema: str = "") -> list[str]:
    """SQLite's statements that make the table's indexes."""
    out = []
    for index in table.indexes:
        if index.primary and table.rowid_key:
            continue
        cut = any(index.prefixes)
        if cut and index.unique:
            continue
        parts = ", ".join(
            f"{ident(c.name)}{collations.collate(False, c.type)}"
            for c in _columns(table, index.columns)
        )
        unique = "UNIQUE " * index.unique
        name = schema + ident(f"{table.name}.{index.name}")
        out.append(f"CREATE {unique}INDEX {name} ON {ident(table.name)} ({parts})")
    return out
