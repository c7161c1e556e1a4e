"""DDL: CREATE, DROP, TRUNCATE and RENAME, in the session's private copy."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from sqlglot import exp

from intercode.sql.dialect.errors import access_denied, mysql_error, syntax_error, unsupported
from intercode.sql.dialect.parser import sqlglot_tokens
from intercode.sql.embedded.catalog.catalog import Column, Index, Table, quote_identifier
from intercode.sql.embedded.catalog.definitions import table_from_create
from intercode.sql.embedded.catalog.information_schema import SYSTEM_SCHEMAS
from intercode.sql.embedded.catalog.types import Type
from intercode.sql.embedded.catalog.values import convert_rows
from intercode.sql.embedded.compile.translation import translate
from intercode.sql.embedded.execute import transactions
from intercode.sql.embedded.execute.alter_table import alter_table, rebuild_table
from intercode.sql.embedded.execute.context import SessionContext
from intercode.sql.embedded.execute.dml import write_transaction
from intercode.sql.embedded.execute.write_targets import (
    record_drop,
    record_table,
    target_database,
    target_table,
)


def execute(tree: exp.Expr, code: str, session: SessionContext) -> None:
    """Execute a DDL statement. Raises StatementError as MySQL does, or for an unsupported one."""
    kind = str(tree.args.get("kind") or "").upper()
    if isinstance(tree, exp.TruncateTable):
        _truncate(tree, session)
    elif isinstance(tree, exp.Alter):
        if kind != "TABLE":
            raise unsupported(f"ALTER {kind}")
        alter_table(tree, session)
    elif isinstance(tree, exp.Drop):
        _drop(tree, kind, session)
    elif isinstance(tree, exp.Create):
        makers = {"TABLE": _create_table, "VIEW": _create_view, "INDEX": _create_index,
                  "DATABASE": _create_database, "SCHEMA": _create_database}  # fmt: skip
        if kind not in makers:
            raise unsupported(f"CREATE {kind}")
        makers[kind](tree, code, session)
    transactions.commit(session)


# ---------------------------------------------------------------- CREATE
def _database_for_new_table(node: exp.Expr, exists: bool, session: SessionContext) -> str | None:
    """Return the database for a new table, or None if the table exists and that is not an error."""
    database = target_database(node.text("db"), session)
    if session.state.catalog.table(database, node.name) is None:
        return database
    if not exists:
        raise mysql_error(1050, node.name)
    return None


def _create_table(tree: exp.Create, code: str, session: SessionContext) -> None:
    this = tree.this
    name = this.this if isinstance(this, exp.Schema) else this
    database = _database_for_new_table(name, bool(tree.args.get("exists")), session)
    if database is None:
        return
    properties = tree.args.get("properties")
    parts = properties.expressions if properties is not None else []
    like = next((p for p in parts if isinstance(p, exp.LikeProperty)), None)
    temporary = any(isinstance(p, exp.TemporaryProperty) for p in parts)
    if like is not None:
        _, model = target_table(like.this, session)
        table = replace(model, name=name.name.lower(), rows=0, foreign_keys=(), auto_increment=1)
    else:
        table = table_from_create(tree)
    rows: list[tuple[Any, ...]] = []
    query = tree.args.get("expression")
    if query is not None:
        translation = translate(query, session.compile_context())
        query_columns = [
            _column_from_query(n, k)
            for n, k in zip(translation.names, translation.types, strict=True)
        ]
        query_names = {c.name.lower() for c in query_columns}
        own_columns = [c for c in table.columns if c.name.lower() not in query_names]
        table = replace(table, columns=(*own_columns, *query_columns))
        read = convert_rows(session.rows(translation), translation.converters)
        rows = [(*[c.default for c in own_columns], *row) for row in read]
    if not table.columns:
        raise mysql_error(1064, "", 1)
    table = replace(table, temporary=temporary)
    with write_transaction(session, database) as connection:
        table = rebuild_table(connection, database, table, rows)
    record_table(session, database, table, "new")


def _column_from_query(name: str, kind: Type) -> Column:
    """Return the column that MySQL creates for an expression of a query."""
    type_names = {
        "int": "bigint" if kind.precision > 10 else "int", "double": "double", "float": "float",
        "date": "date", "datetime": "datetime", "time": "time", "year": "year", "json": "json",
        "bytes": "longblob", "decimal": f"decimal({kind.precision},{kind.scale})",
        "null": "binary(0)",
    }  # fmt: skip
    if kind.kind == "string":
        size = kind.precision
        declared = f"varchar({size})" if 0 < size < 16384 else "longtext"
        kind = replace(kind, precision=size if 0 < size < 16384 else 0, strong=True)
        names = {"general": "utf8mb4_general_ci", "uca": "utf8mb4_0900_ai_ci", "bin": "utf8mb4_bin"}
        return Column(name, kind.as_nullable(), declared, collation=names[kind.collation])
    if kind.kind == "null":
        kind = Type("bytes", collation="bin")
    return Column(name, kind.as_nullable(), type_names.get(kind.kind, "text"))


def _create_view(tree: exp.Create, code: str, session: SessionContext) -> None:
    this = tree.this
    name = this.this if isinstance(this, exp.Schema) else this
    database = target_database(name.text("db"), session)
    existing = session.state.catalog.table(database, name.name)
    if existing is not None and not (tree.args.get("replace") and existing.query is not None):
        raise mysql_error(1050, name.name)
    tokens = sqlglot_tokens(code)
    start = next((t.end + 1 for t in tokens if t.text.upper() == "AS"), None)
    if start is None or tree.expression is None:
        raise syntax_error(code, 0)
    translation = translate(tree.expression, session.compile_context())
    names = (
        [c.name for c in this.expressions] if isinstance(this, exp.Schema) else translation.names
    )
    if len(names) != len(translation.types):
        raise mysql_error(1353)
    columns = tuple(
        replace(_column_from_query(n, k), name=n)
        for n, k in zip(names, translation.types, strict=True)
    )
    query = code[start:].strip().rstrip(";").strip()
    record_table(session, database, Table(name.name.lower(), columns, query=query), "new")


def _create_index(tree: exp.Create, code: str, session: SessionContext) -> None:
    index = tree.this
    database, table = target_table(index.args["table"], session)
    params = index.args.get("params")
    columns = params.args.get("columns") if params is not None else None
    names = [c.this.name if isinstance(c, exp.Ordered) else c.name for c in columns or ()]
    for name in names:
        if table.column(name) is None:
            raise mysql_error(1072, name)
    if any(i.name.lower() == index.name.lower() for i in table.indexes):
        raise mysql_error(1061, index.name)
    new_index = Index(index.name, tuple(names), bool(tree.args.get("unique")), (0,) * len(names))
    changed = replace(table, indexes=(*table.indexes, new_index))
    with write_transaction(session, database) as connection:
        changed = rebuild_table(connection, database, changed, None)
    record_table(session, database, changed, "changed")


def _create_database(tree: exp.Create, code: str, session: SessionContext) -> None:
    name = tree.this.name.lower()
    state = session.state
    if name in state.catalog.databases or name in SYSTEM_SCHEMAS:
        if tree.args.get("exists"):
            return
        raise mysql_error(1007, name)
    session.connection.make_private(name, session.limits.storage, b"")
    databases = {**state.catalog.databases, name: {}}
    catalog = replace(state.catalog, databases=databases, stamp=session.new_stamp())
    touched = {**state.table_changes, (name, ""): "new"}
    session.state = replace(state, catalog=catalog, table_changes=touched)


# ---------------------------------------------------------------- DROP, TRUNCATE, RENAME
def _drop(tree: exp.Drop, kind: str, session: SessionContext) -> None:
    nodes = tree.args.get("tables") or ([tree.this] if tree.this is not None else [])
    exists = bool(tree.args.get("exists"))
    if kind in ("TABLE", "VIEW"):
        targets = [_drop_target(n, exists, session) for n in nodes]
        dropped_names = {t.name for found in targets if found is not None for t in [found[1]]}
        for found in targets:
            if found is not None:
                _drop_table(*found, dropped_names, session)
    elif kind in ("DATABASE", "SCHEMA"):
        _drop_database(nodes[0].name.lower(), exists, session)
    elif kind == "INDEX":
        raise unsupported("DROP INDEX (ALTER TABLE ... DROP INDEX is there)")
    else:
        raise unsupported(f"DROP {kind}")


def _drop_target(node: exp.Expr, exists: bool, session: SessionContext) -> tuple[str, Table] | None:
    database = target_database(node.text("db"), session)
    table = session.state.catalog.table(database, node.name)
    if table is None and not exists:
        raise mysql_error(1051, f"{database}.{node.name.lower()}")
    return None if table is None else (database, table)


def _drop_table(database: str, table: Table, gone: set[str], session: SessionContext) -> None:
    if str(session.setting("foreign_key_checks")) not in ("0", "OFF"):
        for other in session.state.catalog.databases[database].values():
            for key in other.foreign_keys:
                if key.parent == table.name and other.name not in gone:
                    raise mysql_error(3730, table.name, key.name, other.name)
    if table.query is None:
        with write_transaction(session, database) as connection:
            connection.execute(
                f"DROP TABLE {quote_identifier(database)}.{quote_identifier(table.name)}"
            )
    record_drop(session, database, table.name)


def _drop_database(name: str, exists: bool, session: SessionContext) -> None:
    state = session.state
    if name in SYSTEM_SCHEMAS:
        raise access_denied(f"DROP DATABASE {name}", "it is the server's own")
    if name not in state.catalog.databases:
        if exists:
            return
        raise mysql_error(1049, name)
    touched = {k: v for k, v in state.table_changes.items() if k[0] != name}
    for table in session.connection.databases.catalog.databases.get(name, {}):
        touched[name, table] = "gone"
    databases = {k: v for k, v in state.catalog.databases.items() if k != name}
    catalog = replace(state.catalog, databases=databases, stamp=session.new_stamp())
    current = "" if state.database == name else state.database
    session.state = replace(state, catalog=catalog, table_changes=touched, database=current)
    session.connection.make_private(name, session.limits.storage, b"")


def _truncate(tree: exp.TruncateTable, session: SessionContext) -> None:
    for node in tree.expressions:
        database, table = target_table(node, session)
        if str(session.setting("foreign_key_checks")) not in ("0", "OFF"):
            for other in session.state.catalog.databases[database].values():
                if other.name != table.name and any(
                    k.parent == table.name for k in other.foreign_keys
                ):
                    raise unsupported("TRUNCATE of a table that foreign keys point to")
        with write_transaction(session, database) as connection:
            connection.execute(
                f"DELETE FROM {quote_identifier(database)}.{quote_identifier(table.name)}"
            )
        counter = 1 if table.auto_increment is not None else None
        record_table(session, database, replace(table, rows=0, auto_increment=counter), "changed")


def rename_table(code: str, session: SessionContext) -> None:
    """Execute ``RENAME TABLE a TO b``."""
    found = re.fullmatch(r"\s*RENAME\s+TABLE\s+`?(\w+)`?\s+TO\s+`?(\w+)`?\s*;?\s*", code, re.I)
    if found is None:
        raise unsupported("RENAME in this form")
    tree = exp.Alter(
        this=exp.to_table(found[1]), kind="TABLE",
        actions=[exp.AlterRename(this=exp.to_table(found[2]))],
    )  # fmt: skip
    alter_table(tree, session)
    transactions.commit(session)
