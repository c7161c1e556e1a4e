"""Checks foreign keys row by row, as InnoDB does."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

from intercode_sql.dialect.errors import mysql_error, unsupported
from intercode_sql.embedded.catalog.catalog import ForeignKey, Table, quote_table
from intercode_sql.embedded.catalog.collations import collate_clause
from intercode_sql.embedded.execute.context import SessionContext
from intercode_sql.literals import quoted_name

Row = Mapping[str, Any]


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
            if child.name == table.name and inner == dict(old):
                continue
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
