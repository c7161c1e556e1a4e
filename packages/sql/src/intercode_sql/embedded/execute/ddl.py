"""DDL: CREATE, ALTER, DROP, TRUNCATE and RENAME, in the session's private copy."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from intercode_sql.dialect.errors import (
    StatementError,
    access_denied,
    mysql_error,
    syntax_error,
    unsupported,
)
from intercode_sql.dialect.parser import parse
from intercode_sql.embedded.catalog.catalog import Column, Table, quote_schema, quote_table
from intercode_sql.embedded.catalog.collations import collate_clause
from intercode_sql.embedded.catalog.definition_parser import (
    DEFAULT_COLLATION,
    AlteredTable,
    ViewStatement,
    altered_table,
    read_alter_table,
    read_create_index,
    read_create_table,
    read_create_view,
    read_database,
    read_drop,
    read_drop_index,
    read_rename_table,
    read_truncate,
    with_created_index,
)
from intercode_sql.embedded.catalog.information_schema import SYSTEM_SCHEMAS
from intercode_sql.embedded.catalog.table_layout import store_in_key_order
from intercode_sql.embedded.catalog.types import Type
from intercode_sql.embedded.catalog.values import (
    convert_rows,
    default_value,
    result_converter,
    to_stored,
)
from intercode_sql.embedded.compile.strict_values import checked_values
from intercode_sql.embedded.compile.translation import translate
from intercode_sql.embedded.execute import transactions
from intercode_sql.embedded.execute.constraints import referencing_tables
from intercode_sql.embedded.execute.context import SessionContext
from intercode_sql.embedded.execute.dml import duplicate_key_error, violated_index
from intercode_sql.embedded.execute.transactions import write_transaction
from intercode_sql.embedded.execute.write_targets import (
    named_table,
    record_drop,
    record_table,
    target_database,
)
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
        row = _duplicate_row(connection, schema, table, e)
        raise duplicate_key_error(row, table, e) from e


def _duplicate_row(
    connection: sqlite3.Connection, schema: str, table: Table, error: sqlite3.IntegrityError
) -> dict[str, Any]:
    """Return the first row that InnoDB finds to have the same key as another when it sorts the
    keys of a new index, in halves that it merges."""
    index = violated_index(table, error)
    columns = [c for n in index.columns if (c := table.column(n)) is not None] if index else []
    if index is None or not columns:
        return {}
    names = [quoted_name(c.name) for c in columns]
    keys = [f"{n}{collate_clause(True, c.type)}" for n, c in zip(names, columns, strict=True)]
    source = quoted_name(f"raw {table.name}" if index.primary and table.rowid_key else table.name)
    rows = connection.execute(
        f"SELECT DENSE_RANK() OVER (ORDER BY {', '.join(keys)}), {', '.join(names)} "
        f"FROM {schema}{source} WHERE {' AND '.join(f'{n} IS NOT NULL' for n in names)} "
        "ORDER BY rowid"
    ).fetchall()
    found = list[tuple[Any, ...]]()

    def merged(part: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        if len(part) < 2:
            return part
        left, right = merged(part[: len(part) // 2]), merged(part[len(part) // 2 :])
        found.extend(row for row in left if any(row[0] == other[0] for other in right))
        return sorted(left + right)

    merged(rows)
    return dict(zip([c.name for c in columns], found[0][1:], strict=True)) if found else {}


def database_collation(name: str, session: SessionContext) -> str:
    """Return the collation of a database, or of the current one for an empty name."""
    known = session.state.catalog.collations
    return known.get((name or session.database).lower(), DEFAULT_COLLATION)


# ---------------------------------------------------------------- CREATE
def create_table(code: str, session: SessionContext) -> None:
    """Execute CREATE TABLE. Raises StatementError as MySQL does."""
    statement = read_create_table(code, lambda name: database_collation(name, session))
    database = target_database(statement.database, session)
    name = statement.table.name
    if session.state.catalog.table(database, name) is not None:
        if not statement.exists:
            raise mysql_error(1050, name)
        return
    table = statement.table
    if statement.model is not None:
        _, model = named_table(statement.model, session)
        table = replace(model, name=name, rows=0, foreign_keys=(), triggers=(), auto_increment=None)
        table = replace(table, temporary=statement.table.temporary)
    rows: list[tuple[Any, ...]] = []
    if statement.query:
        with checked_values(session.strict, session.modes):
            query = _query_of(code, statement.query, session)
            table, rows = _with_query(table, query, session)
    with write_transaction(session, database) as connection:
        table = rebuild_table(connection, database, table, rows)
    record_table(session, database, table, "new")
    transactions.commit(session)


def _query_of(code: str, text: str, session: SessionContext) -> exp.Expr:
    """Return the query at the end of a statement. Raises StatementError about the statement."""
    try:
        return parse(text, False, session.database)
    except StatementError as e:
        if e.position is None:
            raise
        raise syntax_error(code, code.rindex(text) + e.position) from e


def _with_query(
    table: Table, query: exp.Expr, session: SessionContext
) -> tuple[Table, list[tuple[Any, ...]]]:
    """Return the table of CREATE TABLE ... AS SELECT, and its rows."""
    translation = translate(query, session.compile_context())
    known = {**_read_columns(query, session), **{c.name.lower(): c for c in table.columns}}
    query_columns = []
    for name, kind in zip(translation.names, translation.types, strict=True):
        found, made = known.get(name.lower()), _column_from_query(name, kind)
        query_columns.append(made if found is None else replace(found, name=made.name))
    query_names = {c.name.lower() for c in query_columns}
    own_columns = [c for c in table.columns if c.name.lower() not in query_names]
    table = replace(table, columns=(*own_columns, *query_columns))
    read = convert_rows(session.rows(translation), translation.converters)
    return table, [(*[c.default for c in own_columns], *row) for row in read]


def _read_columns(query: exp.Expr, session: SessionContext) -> dict[str, Column]:
    """Return the columns of tables that a query shows under their own names. MySQL creates them
    with the same types and defaults."""
    joins = query.args.get("joins") or ()
    sources = [source.this for source in (query.args.get("from_"), *joins) if source]
    if query.args.get("with_") or any(join.side or join.method for join in joins):
        return {}
    tables: dict[str, Table] = {}
    for source in sources:
        database = source.text("db").lower() or session.database
        table = session.state.catalog.table(database, source.name)
        if not isinstance(source, exp.Table) or table is None or table.query is not None:
            return {}
        tables[source.alias_or_name.lower()] = table
    found: dict[str, Column] = {}
    for item in query.selects if isinstance(query, exp.Select) else ():
        if not isinstance(item, (exp.Column, exp.Star)):
            continue
        name = item.name.lower()
        for alias, table in tables.items():
            if item.text("table").lower() in ("", alias):
                columns = table.columns if item.is_star else filter(None, [table.column(name)])
                found |= {c.name.lower(): _new_column(c) for c in columns}
    return found


def _new_column(column: Column) -> Column:
    start = "0" if column.auto else column.default
    return replace(column, auto=False, on_update=False, default=start)


def _column_from_query(name: str, kind: Type) -> Column:
    """Return the column that MySQL creates for an expression of a query."""
    type_names = {
        "int": "bigint" if kind.precision > 10 else "int",
        "double": "double",
        "float": "float",
        "date": "date",
        "datetime": "datetime",
        "time": "time",
        "year": "year",
        "json": "json",
        "bytes": "longblob",
        "decimal": f"decimal({kind.precision},{kind.scale})",
        "null": "binary(0)",
    }
    if kind.kind == "string":
        size = kind.precision
        declared = f"varchar({size})" if 0 < size < 16384 else "longtext"
        kind = replace(kind, precision=size if 0 < size < 16384 else 0, strong=True)
        names = {
            "general": "utf8mb4_general_ci",
            "uca": "utf8mb4_0900_ai_ci",
            "bin": "utf8mb4_bin",
            "swedish": "latin1_swedish_ci",
        }
        return Column(name, kind.as_nullable(), declared, collation=names[kind.collation])
    if kind.bits:
        return Column(name, kind.as_nullable(), f"bit({kind.bits})")
    if kind.kind == "null":
        kind = Type("bytes", collation="bin")
    return Column(name, kind.as_nullable(), type_names.get(kind.kind, "text"))


def create_view(code: str, session: SessionContext) -> None:
    """Execute CREATE VIEW. Raises StatementError as MySQL does."""
    view = read_create_view(code)
    database = target_database(view.database, session)
    existing = session.state.catalog.table(database, view.name)
    if existing is not None and not (view.replacing and existing.query is not None):
        raise mysql_error(1050, view.name)
    _query_of(code, view.query, session)
    record_table(session, database, view_table(view, session), "new")
    transactions.commit(session)


def view_table(view: ViewStatement, session: SessionContext) -> Table:
    """Return a view with the columns of its query. Raises StatementError for a wrong query."""
    query = parse(view.query, False, session.database)
    translation = translate(query, session.compile_context())
    names = view.columns or translation.names
    if len(names) != len(translation.types):
        raise mysql_error(1353)
    columns = tuple(
        replace(_column_from_query(n, k), name=n)
        for n, k in zip(names, translation.types, strict=True)
    )
    return Table(view.name.lower(), columns, query=view.query)


def create_index(code: str, session: SessionContext) -> None:
    """Execute CREATE INDEX. Raises StatementError as MySQL does."""
    names, reader = read_create_index(code)
    database, table = named_table(names, session)
    changed = with_created_index(table, reader)
    with write_transaction(session, database) as connection:
        changed = rebuild_table(connection, database, changed, None)
    record_table(session, database, changed, "changed")
    transactions.commit(session)


def drop_index(code: str, session: SessionContext) -> None:
    """Execute DROP INDEX. Raises StatementError as MySQL does."""
    alter_table(read_drop_index(code), session)


def create_database(code: str, session: SessionContext) -> None:
    """Execute CREATE DATABASE. Raises StatementError as MySQL does."""
    statement, state = read_database(code), session.state
    name, collation = statement.name, statement.collation or DEFAULT_COLLATION
    if name not in state.catalog.databases and name not in SYSTEM_SCHEMAS:
        session.connection.make_private(name, session.limits.storage, b"")
        catalog = state.catalog.with_database(name, collation, session.new_stamp())
        touched = {**state.table_changes, (name, ""): "new"}
        session.state = replace(state, catalog=catalog, table_changes=touched)
    elif not statement.exists:
        raise mysql_error(1007, name)
    transactions.commit(session)


# ---------------------------------------------------------------- DROP, TRUNCATE, RENAME
def drop(code: str, session: SessionContext) -> None:
    """Execute DROP TABLE or DROP VIEW. Raises StatementError as MySQL does."""
    view, exists, names = read_drop(code)
    found = list[tuple[str, Table]]()
    for where, name in names:
        database = target_database(where, session)
        table = session.state.catalog.table(database, name)
        if table is not None and view == (table.query is not None):
            found.append((database, table))
        elif table is not None and view:
            raise mysql_error(1347, f"{database}.{table.name}", "VIEW")
        elif not exists:
            raise mysql_error(1051, f"{database}.{name.lower()}")
    dropped_names = {table.name for _, table in found}
    for database, table in found:
        _drop_table(database, table, dropped_names, session)
    transactions.commit(session)


def _drop_table(database: str, table: Table, gone: set[str], session: SessionContext) -> None:
    for other, key in referencing_tables(table, database, session):
        if other.name not in gone:
            raise mysql_error(3730, table.name, key.name, other.name)
    if table.query is None:
        with write_transaction(session, database) as connection:
            connection.execute(f"DROP TABLE {quote_table(database, table.name)}")
    record_drop(session, database, table.name)


def drop_database(code: str, session: SessionContext) -> None:
    """Execute DROP DATABASE. Raises StatementError as MySQL does."""
    statement, state = read_database(code), session.state
    name = statement.name
    if name in SYSTEM_SCHEMAS:
        raise access_denied(f"DROP DATABASE {name}", "it is the server's own")
    if name in state.catalog.databases:
        touched = {k: v for k, v in state.table_changes.items() if k[0] != name}
        for table in session.connection.databases.catalog.databases.get(name, {}):
            touched[name, table] = "gone"
        catalog = state.catalog.without_database(name, session.new_stamp())
        current = "" if state.database == name else state.database
        session.state = replace(state, catalog=catalog, table_changes=touched, database=current)
        session.connection.make_private(name, session.limits.storage, b"")
    elif not statement.exists:
        raise mysql_error(1008, name)
    transactions.commit(session)


def truncate(code: str, session: SessionContext) -> None:
    """Execute TRUNCATE. Raises StatementError as MySQL does."""
    transactions.before_write(session)
    database, table = named_table(read_truncate(code), session)
    for other, key in referencing_tables(table, database, session):
        if other.name != table.name:
            raise mysql_error(1701, f"`{database}`.`{other.name}`, CONSTRAINT `{key.name}`")
    with write_transaction(session, database) as connection:
        connection.execute(f"DELETE FROM {quote_table(database, table.name)}")
    counter = 1 if table.auto_increment is not None else None
    record_table(session, database, replace(table, rows=0, auto_increment=counter), "changed")
    transactions.commit(session)


def rename_table(code: str, session: SessionContext) -> None:
    """Execute ``RENAME TABLE a TO b, c TO d``. If one of the tables cannot be renamed, none is."""
    done: list[tuple[str, str, str]] = []
    try:
        for old, (target, new) in read_rename_table(code):
            database, table = named_table(old, session)
            _rename(database, table.name, target or session.database, new, session)
            done.append((database, new, table.name))
    except StatementError:
        for database, new, old_name in reversed(done):
            _rename(database, new, database, old_name, session)
        raise


def _rename(database: str, old: str, target: str, new: str, session: SessionContext) -> None:
    if target not in session.state.catalog.databases:
        raise mysql_error(1049, target)
    if target != database:
        raise unsupported("RENAME of a table into another database")
    if session.state.catalog.table(database, new) is not None:
        raise mysql_error(1050, new)
    names = [name.replace("`", "``") for name in (database, old, new)]
    alter_table("ALTER TABLE `{}`.`{}` RENAME TO `{}`".format(*names), session)


TEXT_STATEMENTS: dict[tuple[str, str], Callable[[str, SessionContext], None]] = {
    ("ALTER", "TABLE"): alter_table,
    ("CREATE", "DATABASE"): create_database,
    ("CREATE", "INDEX"): create_index,
    ("CREATE", "SCHEMA"): create_database,
    ("CREATE", "TABLE"): create_table,
    ("CREATE", "VIEW"): create_view,
    ("DROP", "DATABASE"): drop_database,
    ("DROP", "INDEX"): drop_index,
    ("DROP", "SCHEMA"): drop_database,
    ("DROP", "TABLE"): drop,
    ("DROP", "VIEW"): drop,
}
"""The functions that execute definitions from their text, by the first word and the kind."""
