"""Shared parts of statements that write: target table, its rows, and the record of changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from intercode_sql.dialect.errors import access_denied, mysql_error, unsupported
from intercode_sql.dialect.keywords import AGGREGATE_FUNCTIONS
from intercode_sql.dialect.parser import FUNCTION_MARK, parse
from intercode_sql.embedded.catalog import information_schema
from intercode_sql.embedded.catalog.catalog import Column, Table, quote_schema
from intercode_sql.embedded.catalog.table_layout import create_index_sql, plain_column
from intercode_sql.embedded.catalog.types import ASCII_STRING
from intercode_sql.embedded.catalog.values import result_converter
from intercode_sql.embedded.compile.calls import default_expression
from intercode_sql.embedded.compile.conversions import (
    as_number,
    as_text,
    compile_condition,
    require_rounded,
    sort_expression,
    time_of_this_day,
)
from intercode_sql.embedded.compile.model import Scope, Source, compile_scalar
from intercode_sql.embedded.compile.queries import root_scope
from intercode_sql.embedded.compile.select import limit_clause
from intercode_sql.embedded.compile.sources import (
    base_table_source,
    from_clause,
    require_no_partition,
)
from intercode_sql.embedded.execute.context import SessionContext
from intercode_sql.literals import quoted_name

TargetRow = tuple[int, dict[str, Any], list[Any]]
TargetRows = list[TargetRow]


def target_database(name: str, session: SessionContext) -> str:
    """Return the database that a statement writes to. Raises StatementError 1046, 1049 or 1227."""
    database = (name or session.database).lower()
    if not database:
        raise mysql_error(1046)
    if database in information_schema.SYSTEM_SCHEMAS:
        raise access_denied(f"writing to {database}", "it is the server's own database")
    if database not in session.state.catalog.databases:
        raise mysql_error(1049, database)
    return database


def target_table(node: exp.Expr, word: str, session: SessionContext) -> tuple[str, Table]:
    """Return the table that a statement writes to, which begins with that word. Raises
    StatementError 1146, 1288 or 1471."""
    require_no_partition(node)
    database, table = _existing_table((node.text("db"), node.name), session)
    if table.query is not None:
        if _is_updatable(parse(table.query)):
            raise unsupported("a write through a view")
        raise mysql_error(1471 if word == "INSERT" else 1288, node.name, word)
    return database, table


def named_table(names: tuple[str, str], session: SessionContext) -> tuple[str, Table]:
    """Return the table of that database (empty: the current one) and name that a statement
    defines anew. Raises StatementError 1146 or 1347."""
    database, table = _existing_table(names, session)
    if table.query is not None:
        raise mysql_error(1347, f"{database}.{table.name}", "BASE TABLE")
    return database, table


def _existing_table(names: tuple[str, str], session: SessionContext) -> tuple[str, Table]:
    database = target_database(names[0], session)
    table = session.state.catalog.table(database, names[1])
    if table is None:
        raise mysql_error(1146, f"{database}.{names[1].lower()}")
    return database, table


def _is_updatable(query: exp.Expr) -> bool:
    """Return whether MySQL writes through a view of a query: each row of it is one of a table."""
    parts = ("distinct", "group", "having", "limit")
    if not isinstance(query, exp.Select) or any(query.args.get(part) for part in parts):
        return False
    if query.args.get("from_") is None or query.find(exp.GroupConcat, exp.Window) is not None:
        return False
    calls = (call.name.removeprefix(FUNCTION_MARK) for call in query.find_all(exp.Anonymous))
    return AGGREGATE_FUNCTIONS.isdisjoint(map(str.upper, calls))


def select_target_rows(
    tree: exp.Update | exp.Delete,
    table: Table,
    database: str,
    session: SessionContext,
    values: Sequence[exp.Expr],
    columns: Sequence[Column],
    rowid: int | None = None,
) -> TargetRows:
    """Return the rows that WHERE, ORDER BY and LIMIT select, or the one with that ``rowid``: rowid,
    stored values, new values."""
    check_self_reference(tree, table.name)
    context = session.compile_context()
    scope = Scope(context, parent=root_scope(context))
    source = base_table_source(table, database, tree.this.alias or table.name, scope)
    scope.sources.append(source)
    makers = _value_makers(values, columns, scope)
    scope.clause = "where"
    where = tree.args.get("where")
    tests = f" WHERE {compile_condition(where.this, scope)}" if where is not None else ""
    if rowid is not None:
        tests = f" WHERE {source.alias}.{table.rowid_name} = {rowid}"
    scope.clause = "order"
    order = tree.args.get("order")
    keys = [f"{source.alias}.{table.rowid_name}"]
    for item in reversed(order.expressions if order is not None else ()):
        compiled = compile_scalar(item.this, scope)
        keys.insert(0, sort_expression(compiled) + " DESC" * bool(item.args.get("desc")))
    own_columns = [f"{source.alias}.{quoted_name(c.name)}" for c in table.columns]
    select_list = ", ".join(
        [f"{source.alias}.{table.rowid_name}", *own_columns, *(sql for sql, _ in makers)]
    )
    session.connection.attach(context.databases)
    rows = session.connection.sqlite.execute(
        f"SELECT {select_list} FROM {source.sql()}{tests} "
        f"ORDER BY {', '.join(keys)}{limit_clause(tree)}"
    ).fetchall()
    return [_target_row(row, table, makers) for row in rows]


def _target_row(row: Sequence[Any], table: Table, makers: Sequence[tuple[str, Any]]) -> TargetRow:
    """Return the rowid, the stored values and the new values of a selected row."""
    size = len(table.columns) + 1
    old = {c.name: value for c, value in zip(table.columns, row[1:size], strict=True)}
    pairs = zip(row[size:], makers, strict=True)
    return row[0], old, [v if v is None or read is None else read(v) for v, (_, read) in pairs]


def _value_makers(
    values: Sequence[exp.Expr], columns: Sequence[Column], scope: Scope
) -> list[tuple[str, Any]]:
    return [_value_maker(v, c, scope) for v, c in zip(values, columns, strict=True)]


def _value_maker(node: exp.Expr, column: Column, scope: Scope) -> tuple[str, Any]:
    """Return the SQL of a new value of a column, and what converts it."""
    compiled = compile_scalar(resolve_default(node, column), scope)
    if scope.aggregated:
        raise mysql_error(1111)
    if (
        column.type.kind == "string"
        and not column.values
        and compiled.sql.startswith("mysql_quotient(")
    ):
        sql = compiled.sql.replace("mysql_quotient(", "mysql_quotient_text(", 1)
        compiled = replace(compiled, sql=sql, type=ASCII_STRING)
    if not column.values:
        require_rounded(compiled, column.type)
    bytes_literal = compiled.literal is not None and compiled.type.binary
    if column.type.number and (bytes_literal or compiled.type.ranked):
        compiled = as_number(compiled)
    if column.type.kind in ("date", "datetime"):
        compiled = time_of_this_day(compiled, scope)
    fraction = column.type.text and compiled.type.moment and compiled.type.scale
    if fraction or (column.type.long and compiled.type.bits):
        compiled = as_text(compiled)
    return compiled.sql, result_converter(compiled.type)


def resolve_default(node: exp.Expr, column: Column) -> exp.Expr:
    """Replace the value of ``SET c = DEFAULT``."""
    is_default = isinstance(node, (exp.Var, exp.Column)) and node.name.upper() == "DEFAULT"
    return default_expression(column) if is_default else node


def check_self_reference(tree: exp.Expr, name: str) -> None:
    """Raise StatementError 1093 if a subquery reads the table that the statement writes to. A
    derived table may read it."""
    for table in tree.find_all(exp.Table):
        above = table.parent
        if table.name.lower() != name.lower() or table.find_ancestor(exp.Select) is None:
            continue
        inside = False
        while above is not None:
            if isinstance(above, exp.Subquery) and isinstance(above.parent, (exp.From, exp.Join)):
                inside = True
            above = above.parent
        if not inside:
            raise mysql_error(1093, name)


def record_write(
    session: SessionContext, database: str, table: Table, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Record that rows were written to a table, and update ``Type.plain`` of its columns."""
    if not rows:
        return
    columns = tuple(
        plain_column(c, {r.get(c.name) for r in rows}, c.type.plain)
        if c.type.kind == "string" and c.type.plain
        else c
        for c in table.columns
    )
    unique_lost = False
    for before, after in zip(table.columns, columns, strict=True):
        unique_lost |= before.type.plain > 0 and after.type.plain == 0
    changed = replace(table, columns=columns)
    if unique_lost:
        _rebuild_indexes(session, database, changed)
    record_table(session, database, changed, "changed")


def _rebuild_indexes(session: SessionContext, database: str, table: Table) -> None:
    """Create the indexes again, under the collation that the text now needs."""
    connection = session.connection.sqlite
    schema = quote_schema(database) + "."
    names = [quoted_name(f"{table.name}.{i.name}") for i in table.indexes]
    for name in names:
        connection.execute(f"DROP INDEX IF EXISTS {schema}{name}")
    for statement in create_index_sql(table, schema):
        connection.execute(statement)


def record_table(session: SessionContext, database: str, table: Table, what: str) -> None:
    """Record a new or changed table."""
    state = session.state
    catalog = state.catalog.with_table(database, table, session.new_stamp())
    touched = {**state.table_changes, (database, table.name): what}
    session.state = replace(state, catalog=catalog, table_changes=touched)


def record_drop(session: SessionContext, database: str, name: str) -> None:
    """Record that a table was dropped. A table that the session had created leaves no trace."""
    state = session.state
    catalog = state.catalog.without_table(database, name, session.new_stamp())
    touched = {k: v for k, v in state.table_changes.items() if k != (database, name.lower())}
    if session.connection.databases.catalog.table(database, name) is not None:
        touched[database, name.lower()] = "gone"
    session.state = replace(state, catalog=catalog, table_changes=touched)


# ---------------------------------------------------------------- several tables
def has_several_tables(tree: exp.Update | exp.Delete) -> bool:
    """Return whether an UPDATE or DELETE joins tables or names those to delete from."""
    args = tree.args
    first = tree.this
    return bool(
        not isinstance(first, exp.Table)
        or first.args.get("joins")
        or args.get("tables")
        or args.get("using")
        or args.get("from_")
    )


class JoinedTargets:
    """The joined tables of an UPDATE or DELETE, which writes each row that they select once.

    Raises StatementError for tables and conditions as a SELECT does, and 1221 for ORDER BY or
    LIMIT.
    """

    def __init__(self, tree: exp.Update | exp.Delete, session: SessionContext) -> None:
        word = "UPDATE" if isinstance(tree, exp.Update) else "DELETE"
        for clause, shown in (("order", "ORDER BY"), ("limit", "LIMIT")):
            if tree.args.get(clause) is not None:
                raise mysql_error(1221, word, shown)
        self._session = session
        self._context = session.compile_context()
        self._scope = Scope(self._context, parent=root_scope(self._context))
        joined_tables = (tree.args.get("using") or [tree.this])[0]
        rest = (tree.args.get("using") or [])[1:]
        query = exp.Select().from_(joined_tables.copy())
        for table in rest:
            query.append("joins", exp.Join(this=table.copy()))
        joined = from_clause(query, self._scope)
        assert joined is not None
        self._from = joined.text or joined.sources[0].placeholder
        self._scope.clause = "where"
        where = tree.args.get("where")
        self._where = (
            f" WHERE {compile_condition(where.this, self._scope)}" if where is not None else ""
        )
        self._tree = tree

    def named_source(self, node: exp.Table) -> tuple[str, Table, Source]:
        """Return the database, the table and the source that a DELETE names. Raises StatementError
        1109 for none, and 1288 for what is no table."""
        for source in self._scope.sources:
            database = node.text("db").lower()
            if source.name.lower() == node.name.lower() and database in ("", source.database):
                return self._writable(source, "DELETE")
        raise mysql_error(1109, node.name, "MULTI DELETE")

    def column_source(self, node: exp.Column) -> tuple[str, Table, Source, Column]:
        """Return the database, the table, the source and the column that an assignment names."""
        self._scope.clause = "select"
        self._scope.column(node)  # the errors of unknown and ambiguous names
        found = [
            s
            for s in self._scope.sources
            if node.table.lower() in ("", s.name.lower()) and s.find(node.name) is not None
        ]
        database, table, source = self._writable(found[0], "UPDATE")
        column = table.column(node.name)
        assert column is not None
        return database, table, source, column

    def _writable(self, source: Source, word: str) -> tuple[str, Table, Source]:
        if source.table is None:
            raise mysql_error(1288, source.name, word)
        check_self_reference(self._tree, source.table.name)
        return source.database, source.table, source

    def rows(
        self, source: Source, table: Table, values: Sequence[exp.Expr], columns: Sequence[Column]
    ) -> TargetRows:
        """Return the rows of one table that the join selects: rowid, stored values, new values."""
        self._scope.clause = "select"
        makers = _value_makers(values, columns, self._scope)
        shown = [
            f"{source.alias}.{quoted_name(table.rowid_key or table.rowid_name)}",
            *(f"{source.alias}.{quoted_name(c.name)}" for c in table.columns),
            *(sql for sql, _ in makers),
        ]
        text = self._from
        for one in self._scope.sources:
            text = text.replace(one.placeholder, one.sql())
        keys = [key for s in self._scope.sources if s.table is not None for key in s.keys]
        self._session.connection.attach(self._context.databases)
        found = self._session.connection.sqlite.execute(
            f"SELECT {', '.join(shown)} FROM {text}{self._where} ORDER BY {', '.join(keys)}"
        ).fetchall()
        first: dict[int, Any] = {}
        for row in found:
            if row[0] is not None:  # else no match; a later match of a row counts for nothing
                first.setdefault(row[0], row)
        return [_target_row(row, table, makers) for row in first.values()]
