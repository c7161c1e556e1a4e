"""ALTER TABLE: creates the changed table and copies the rows into it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from intercode.sql.dialect.errors import mysql_error, unsupported
from intercode.sql.dialect.parser import mysql_text
from intercode.sql.embedded.catalog.catalog import Column, Table, quote_identifier
from intercode.sql.embedded.catalog.definitions import (
    column_from_definition,
    validate_table,
    with_definition,
    with_index,
)
from intercode.sql.embedded.catalog.values import default_value, result_converter, to_stored
from intercode.sql.embedded.execute.context import SessionContext
from intercode.sql.embedded.execute.dml import duplicate_key_error, write_transaction
from intercode.sql.embedded.execute.write_targets import record_drop, record_table, target_table
from intercode.sql.embedded.load.table_layout import store_in_key_order

AlterPlan = tuple[Table, dict[str, str | None]]
"""The changed table, and for each of its columns the old column with its values."""


def alter_table(tree: exp.Alter, session: SessionContext) -> None:
    """Execute ALTER TABLE. Raises StatementError as MySQL does, or for an unsupported action."""
    database, table = target_table(tree.this, session)
    plan: AlterPlan = (table, {c.name: c.name for c in table.columns})
    for action in tree.args.get("actions") or ():
        plan = _apply_action(plan, action)
    after, origins = plan
    after = validate_table(after)
    if not after.columns:
        raise mysql_error(1090)
    if after.name != table.name and session.state.catalog.table(database, after.name):
        raise mysql_error(1050, after.name)
    for child in session.state.catalog.databases[database].values():
        if after.name != table.name and any(k.parent == table.name for k in child.foreign_keys):
            raise unsupported("RENAME of a table that foreign keys point to")
    with write_transaction(session, database) as connection:
        rows = _migrate_rows(
            connection, database, table, after, origins, session.compile_context().now
        )
        connection.execute(
            f"DROP TABLE {quote_identifier(database)}.{quote_identifier(table.name)}"
        )
        after = rebuild_table(connection, database, after, rows)
    if after.name != table.name:
        record_drop(session, database, table.name)
    record_table(session, database, after, "changed" if after.name == table.name else "new")


def _migrate_rows(
    connection: sqlite3.Connection,
    database: str,
    before: Table,
    after: Table,
    origins: dict[str, str | None],
    now: str,
) -> list[tuple[Any, ...]]:
    """Return the old rows with the new columns."""
    names = [c.name for c in before.columns]
    column_list = ", ".join(quote_identifier(n) for n in names)
    source = f"{quote_identifier(database)}.{quote_identifier(before.name)}"
    rows = connection.execute(f"SELECT {column_list} FROM {source} ORDER BY rowid").fetchall()
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
    origins: dict[str, str | None],
    now: str,
    row_number: int,
) -> Any:
    origin = origins.get(column.name)
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
    schema = quote_identifier(database) + "."
    if rows is None:
        names = ", ".join(quote_identifier(c.name) for c in table.columns)
        rows = connection.execute(
            f"SELECT {names} FROM {schema}{quote_identifier(table.name)}"
        ).fetchall()
        connection.execute(f"DROP TABLE {schema}{quote_identifier(table.name)}")
    raw = schema + quote_identifier("raw " + table.name)
    columns = ", ".join(quote_identifier(c.name) for c in table.columns)
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


# ---------------------------------------------------------------- the actions
def _apply_action(plan: AlterPlan, action: exp.Expr) -> AlterPlan:
    table, origins = plan
    if isinstance(action, exp.ColumnDef):
        return _add_column(table, origins, action)
    if isinstance(action, exp.Drop):
        return _drop_columns_or_keys(table, origins, action)
    if isinstance(action, exp.RenameColumn):
        return _rename_column(table, origins, action.this.name, action.args["to"].name)
    if isinstance(action, exp.AlterRename):
        return replace(table, name=action.this.name.lower()), origins
    if isinstance(action, exp.ModifyColumn):
        return _modify_column(table, origins, action)
    if isinstance(action, exp.AddConstraint):
        for part in action.expressions:
            table = with_definition(table, part)
        return table, origins
    if isinstance(action, exp.AlterColumn):
        return _alter_default(table, action), origins
    raise unsupported(f"ALTER TABLE ... {mysql_text(action)[:60]}")


def _add_column(table: Table, origins: dict[str, str | None], action: exp.ColumnDef) -> AlterPlan:
    position = action.args.get("position")
    after = with_definition(table, action)
    if position is not None:
        new, rest = after.columns[-1], list(after.columns[:-1])
        at = 0
        if position.this is not None:
            names = [c.name.lower() for c in rest]
            if position.this.name.lower() not in names:
                raise mysql_error(1054, position.this.name, table.name)
            at = names.index(position.this.name.lower()) + 1
        rest.insert(at, new)
        after = replace(after, columns=tuple(rest))
    return after, {**origins, action.name: None}


def _drop_columns_or_keys(
    table: Table, origins: dict[str, str | None], action: exp.Drop
) -> AlterPlan:
    kind = str(action.args.get("kind") or "COLUMN").upper()
    nodes = action.args.get("tables") or [action.this]
    for node in nodes:
        name = node.name
        if kind == "COLUMN":
            column = table.column(name)
            if column is None:
                raise mysql_error(1091, name)
            if any(name.lower() in (c.lower() for c in k.columns) for k in table.foreign_keys):
                raise unsupported("DROP COLUMN of a foreign key")
            keys = tuple(
                replace(i, columns=tuple(c for c in i.columns if c.lower() != name.lower()))
                for i in table.indexes
            )
            table = replace(
                table,
                columns=tuple(c for c in table.columns if c is not column),
                indexes=tuple(k for k in keys if k.columns),
            )
        elif kind in ("INDEX", "KEY"):
            if not any(i.name.lower() == name.lower() for i in table.indexes):
                raise mysql_error(1091, name)
            rest = tuple(i for i in table.indexes if i.name.lower() != name.lower())
            table = replace(table, indexes=rest)
        else:
            raise unsupported(f"ALTER TABLE ... DROP {kind}")
    return table, origins


def _rename_column(table: Table, origins: dict[str, str | None], old: str, new: str) -> AlterPlan:
    column = table.column(old)
    if column is None:
        raise mysql_error(1054, old, table.name)
    if table.column(new) is not None and new.lower() != old.lower():
        raise mysql_error(1060, new)

    def name(word: str) -> str:
        return new if word.lower() == old.lower() else word

    columns = tuple(replace(c, name=name(c.name)) for c in table.columns)
    indexes = tuple(replace(i, columns=tuple(map(name, i.columns))) for i in table.indexes)
    foreign_keys = tuple(
        replace(k, columns=tuple(map(name, k.columns))) for k in table.foreign_keys
    )
    after = replace(table, columns=columns, indexes=indexes, foreign_keys=foreign_keys)
    return after, {**origins, new: origins.get(column.name)}


def _modify_column(
    table: Table, origins: dict[str, str | None], action: exp.ModifyColumn
) -> AlterPlan:
    definition = action.this
    old = action.args.get("rename_from")
    if old is not None:
        table, origins = _rename_column(table, origins, old.name, definition.name)
    column = table.column(definition.name)
    if column is None:
        raise mysql_error(1054, definition.name, table.name)
    new, keys = column_from_definition(definition, table.collation)
    new = replace(new, name=column.name)
    columns = tuple(new if c is column else c for c in table.columns)
    table = replace(table, columns=columns)
    for key in keys:
        name = "PRIMARY" if key == "PRIMARY" else column.name
        table = with_index(table, name, [exp.to_identifier(column.name)], True)
    return table, origins


def _alter_default(table: Table, action: exp.AlterColumn) -> Table:
    column = table.column(action.this.name)
    if column is None:
        raise mysql_error(1054, action.this.name, table.name)
    default = action.args.get("default")
    if default is None and not action.args.get("drop"):
        raise unsupported("ALTER COLUMN in this form")
    value = None if default is None or isinstance(default, exp.Null) else default.name
    new = replace(column, default=value, computed=False)
    return replace(table, columns=tuple(new if c is column else c for c in table.columns))
