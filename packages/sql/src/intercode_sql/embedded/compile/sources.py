"""Compiles FROM: tables, views, derived tables and joins become sources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from intercode_sql.dialect.errors import access_denied, mysql_error, unsupported
from intercode_sql.dialect.parser import mysql_text, parse
from intercode_sql.embedded.catalog import information_schema
from intercode_sql.embedded.catalog.catalog import Table, quote_table
from intercode_sql.embedded.compile.conversions import compile_condition
from intercode_sql.embedded.compile.model import (
    ASSIGNS,
    CompileContext,
    CompiledQuery,
    Expression,
    JoinedColumns,
    JoinedSources,
    Scope,
    Source,
)
from intercode_sql.embedded.compile.operators import compare
from intercode_sql.literals import SQLITE_LITERALS, quoted_name


def from_clause(node: exp.Select, scope: Scope) -> JoinedSources | None:
    """Compile FROM, or return None if there is none.

    Raises StatementError 1046, 1049, 1066, 1146, 1248 and those of the conditions.
    """
    start = node.args.get("from_")
    if start is None:
        return None
    entries = [(start.this, exp.Join())]
    entries += [(join.this, join) for join in node.args.get("joins") or ()]
    # all tables are opened before the conditions are compiled
    (group, _), *rest = [(_from_entry(entry, scope), join) for entry, join in entries]
    _check_unique_names(scope)
    joined: JoinedSources | None = None
    for one, join in rest:
        if _is_comma_join(join):
            joined = group if joined is None else _cross_join(joined, group)
            group = one
        else:
            group = _join(group, one, join, scope)
    return group if joined is None else _cross_join(joined, group)


def _is_comma_join(join: exp.Join) -> bool:
    args = join.args
    keys = ("on", "using", "side", "kind", "method")
    return not any(args.get(k) for k in keys)


def _check_unique_names(scope: Scope) -> None:
    seen: set[tuple[str, str]] = set()
    for source in scope.sources:
        key = (source.database.lower() if source.table else "", source.name.lower())
        if key in seen:
            raise mysql_error(1066, source.name)
        seen.add(key)


def _from_entry(node: exp.Expr, scope: Scope) -> JoinedSources:
    """Compile one entry: a table, a subquery, or joins in brackets."""
    if isinstance(node, exp.Table):
        inner = node.this
        if isinstance(inner, exp.Func):
            raise unsupported(f"a table made by {inner.sql_name()}")
        if node.name.lower() == "dual" and not node.db:
            return JoinedSources("(SELECT 1)", [])
        if node.args.get("joins"):
            bare = node.copy()
            bare.set("joins", None)
            return _nested_joins(bare, node.args["joins"], scope)
        source = table_source(node, scope)
        _check_hints(node, source)
    elif isinstance(node, exp.Subquery):
        within: exp.Expr = node.this
        if isinstance(within, (exp.Table, exp.Subquery)) and not node.alias:
            joins = [*(within.args.get("joins") or ()), *(node.args.get("joins") or ())]
            first = within.copy()
            first.set("joins", None)
            return _nested_joins(first, joins, scope)
        source = _derived_table_source(node, scope)
    else:
        raise unsupported(f"{mysql_text(node)[:60]} in FROM")
    scope.sources.append(source)
    return _single_source(source)


def _check_hints(node: exp.Table, source: Source) -> None:
    """Raise StatementError 1176 if an index that USE, FORCE or IGNORE names does not exist."""
    if source.table is None:
        return
    known = {index.name.lower() for index in source.table.indexes}
    for hint in node.args.get("hints") or ():
        for index in hint.expressions:
            if index.name.lower() not in known:
                raise mysql_error(1176, index.name, source.name)


def _nested_joins(first: exp.Expr, joins: list[exp.Join], scope: Scope) -> JoinedSources:
    joined = _from_entry(first, scope)
    for join in joins:
        joined = _join(joined, _from_entry(join.this, scope), join, scope)
    for source in joined.sources:  # SQLite makes a query of brackets, which hides the rowid
        if source.table is not None:
            key = source.table.rowid_key
            source.keys = [f"{source.alias}.{quoted_name(key)}"] if key is not None else []
    return JoinedSources(
        f"({_joined_sql(joined)})", joined.sources, joined.list_columns, joined.outer
    )


def _single_source(source: Source) -> JoinedSources:
    def listed() -> JoinedColumns:
        return [(name, Expression(sql, kind), source.name) for name, kind, sql in source.columns]

    return JoinedSources("", [source], listed)


def _joined_sql(joined: JoinedSources) -> str:
    return joined.text or joined.sources[0].placeholder


def _cross_join(left: JoinedSources, right: JoinedSources) -> JoinedSources:
    text = f"{_joined_sql(left)} JOIN {_joined_sql(right)}"
    return JoinedSources(
        text,
        left.sources + right.sources,
        lambda: left.columns + right.columns,
        left.outer or right.outer,
    )


def _join(left: JoinedSources, right: JoinedSources, join: exp.Join, scope: Scope) -> JoinedSources:
    args = join.args
    side = (args.get("side") or "").upper()
    kind = (args.get("kind") or "").upper()
    natural = (args.get("method") or "").upper() == "NATURAL"
    names = (
        _common_column_names(left, right) if natural else [i.name for i in args.get("using") or ()]
    )
    scope.visible = left.sources + right.sources
    before, scope.clause = scope.clause, "on"
    try:
        on = compile_condition(args["on"], scope) if args.get("on") is not None else ""
        shown: JoinedColumns | None = None
        if names:
            on, shown = _using_columns(left, right, names, side, scope)
    finally:
        scope.clause, scope.visible = before, None
    for source in right.sources if side == "LEFT" else left.sources if side == "RIGHT" else ():
        source.nullable = True

    def listed() -> JoinedColumns:
        columns = left.columns + right.columns if shown is None else shown
        return (
            [(n, Expression(e.sql, e.type.as_nullable()), s) for n, e, s in columns]
            if side
            else columns
        )

    sources = left.sources + right.sources
    clause = f" ON {on}" if on else ""
    a, b = _joined_sql(left), _joined_sql(right)
    if side == "RIGHT":
        a = f"({a})" if len(left.sources) > 1 and not a.startswith("(") else a
        return JoinedSources(
            f"{b} LEFT JOIN {a}{clause}", right.sources + left.sources, listed, True
        )
    b = f"({b})" if len(right.sources) > 1 and not b.startswith("(") else b
    word = "LEFT JOIN" if side == "LEFT" else "CROSS JOIN" if kind == "STRAIGHT" else "JOIN"
    return JoinedSources(f"{a} {word} {b}{clause}", sources, listed, left.outer or bool(side))


def _common_column_names(left: JoinedSources, right: JoinedSources) -> list[str]:
    names = {n.lower() for n, _, _ in right.columns}
    return [n for n, _, _ in left.columns if n.lower() in names]


def _using_columns(
    left: JoinedSources, right: JoinedSources, names: list[str], side: str, scope: Scope
) -> tuple[str, JoinedColumns]:
    """Compile USING and NATURAL: ``*`` shows the equal columns once, and their names are not
    ambiguous."""
    tests, shown = [], []
    low = {n.lower() for n in names}
    for name in names:
        pair = []
        for part in (left, right):
            hits = [e for n, e, _ in part.columns if n.lower() == name.lower()]
            if not hits:
                raise mysql_error(1054, name, "from clause")
            if len(hits) > 1:
                raise mysql_error(1052, name, "from clause")
            pair.append(hits[0])
        tests.append(compare("=", pair[0], pair[1]).sql)
        merged = pair[1] if side == "RIGHT" else pair[0]
        scope.joined_columns[name.lower()] = merged
        shown.append((name, merged, ""))
    rest = [c for p in (left, right) for c in p.columns if c[0].lower() not in low]
    return " AND ".join(tests) or "1", shown + rest


# ---------------------------------------------------------------- single sources
def table_source(node: exp.Table, scope: Scope) -> Source:
    """Return a table, a view, a common table expression or a table of information_schema."""
    name, alias = node.name, node.alias or node.name
    require_no_partition(node)
    if not node.db and (common := scope.cte(name)) is not None:
        return common(scope, alias)
    database = (node.db or scope.context.database).lower()
    if not database:
        raise mysql_error(1046)
    if database in information_schema.SYSTEM_SCHEMAS:
        return _information_schema_source(database, name, alias, scope.context)
    if database not in scope.context.catalog.databases:
        raise mysql_error(1049, node.db or database)
    table = scope.context.catalog.table(database, name)
    if table is None:
        raise mysql_error(1146, f"{database}.{name.lower()}")
    if table.query is not None:
        return _view_source(table, database, alias, scope)
    return base_table_source(table, database, alias, scope)


def require_no_partition(node: exp.Expr) -> None:
    """Raise StatementError for a table of which a statement names partitions. This engine keeps
    the rows of all of them together."""
    if node.args.get("partition"):
        raise unsupported(f"PARTITION of the table {node.name}")


def base_table_source(table: Table, database: str, alias: str, scope: Scope) -> Source:
    """Return a table as a source."""
    sql_alias = scope.context.new_alias()
    scope.context.databases.add(database)
    columns = [(c.name, c.type, f"{sql_alias}.{quoted_name(c.name)}") for c in table.columns]
    text = quote_table(database, table.name)
    order = [f"{sql_alias}.{table.rowid_name}"]
    return Source(alias, sql_alias, database, columns, text, order, table, table.rows)


def _view_source(table: Table, database: str, alias: str, scope: Scope) -> Source:
    outer = Scope(scope.context)
    before, scope.context.database = scope.context.database, database
    try:
        query = scope.context.compile(parse(table.query or ""), outer, ordered=False)
    finally:
        scope.context.database = before
    names = [c.name for c in table.columns]
    return query_source(query, names, alias, scope, database)


def _derived_table_source(node: exp.Subquery, scope: Scope) -> Source:
    if not node.alias:
        raise mysql_error(1248)
    inner = node.this
    while isinstance(inner, exp.Subquery):
        inner = inner.this
    lateral = Scope(scope.context, parent=scope.parent, ctes=_visible_ctes(scope))
    query = scope.context.compile(inner, lateral, ordered=bool(inner.args.get("order")))
    if ASSIGNS in query.sql:
        query = _assigned_first(inner, query, lateral)
    alias = node.args["alias"]
    names = [c.name for c in alias.args.get("columns") or ()] or query.names
    if len(names) != len(query.types):
        raise mysql_error(1353)
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise mysql_error(1060, name)
        seen.add(name.lower())
    return query_source(query, names, node.alias, scope, "")


def _assigned_first(inner: exp.Expr, query: CompiledQuery, scope: Scope) -> CompiledQuery:
    """Return a derived table that sets user variables: also in columns that nothing reads. One
    without FROM does so before the rest of the statement, and has the values that it sets."""
    if inner.args.get("from_") is not None:
        alias = scope.context.new_alias()
        whole = f"WITH {alias} AS MATERIALIZED ({query.sql}) SELECT * FROM {alias}"
        return replace(query, sql=whole, plain=False)
    scope.context.first.append(query.sql)
    values = inner.copy()
    for node in list(values.find_all(exp.PropertyEQ)):
        node.replace(node.expression)
    return replace(scope.context.compile(values, scope, ordered=False), names=query.names)


def _visible_ctes(scope: Scope) -> dict[str, Callable[[Scope, str], Source]]:
    found: dict[str, Callable[[Scope, str], Source]] = {}
    one: Scope | None = scope
    while one is not None:
        found = {**one.ctes, **found}
        one = one.parent
    return found


def query_source(
    query: CompiledQuery, names: list[str], alias: str, scope: Scope, database: str
) -> Source:
    """Return a query as a source."""
    sql_alias = scope.context.new_alias()
    columns = [
        (n, k, f"{sql_alias}.c{i}") for i, (n, k) in enumerate(zip(names, query.types, strict=True))
    ]
    return Source(
        alias, sql_alias, database, columns, f"({query.sql})", rows=10, single=query.single
    )


def _information_schema_source(
    database: str, name: str, alias: str, context: CompileContext
) -> Source:
    """Return a table of information_schema. Raises StatementError 1109 for an unknown one, 1227 for
    another system database."""
    if database != "information_schema":
        raise access_denied(f"reading {database}", "it is the server's own database")
    low = name.lower()
    if low not in information_schema.TABLES:
        if low in information_schema.UNSUPPORTED_TABLES:
            raise unsupported(f"information_schema.{name}")
        raise mysql_error(1109, name, "information_schema")
    columns, rows = information_schema.TABLES[low]
    sql_alias = context.new_alias()
    lines = [", ".join(SQLITE_LITERALS.literal(v) for v in row) for row in rows(context.catalog)]
    names = ", ".join(f'"{n}"' for n, _ in columns)
    nothing = f"SELECT {', '.join('NULL' for _ in columns)} WHERE 0"
    body = f"VALUES {', '.join(f'({line})' for line in lines)}" if lines else nothing
    with_names = f"(WITH t({names}) AS ({body}) SELECT * FROM t)"
    found = [(n, k, f'{sql_alias}."{n}"') for n, k in columns]
    return Source(alias, sql_alias, database, found, with_names, rows=len(lines))
