"""Translates a parsed query to SQLite's SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from intercode_sql.dialect.errors import mysql_error, unsupported
from intercode_sql.dialect.group_by import TableKeys, group_by_error
from intercode_sql.dialect.parser import all_nodes
from intercode_sql.embedded.catalog.catalog import Table
from intercode_sql.embedded.catalog.information_schema import SYSTEM_SCHEMAS
from intercode_sql.embedded.catalog.types import Type
from intercode_sql.embedded.catalog.values import result_converter
from intercode_sql.embedded.compile.model import ASSIGNS, CompileContext
from intercode_sql.embedded.compile.queries import compile_query, root_scope
from intercode_sql.types import ResultColumn, TypeCode


@dataclass(frozen=True, slots=True)
class Translation:
    """A query in SQLite's SQL. ``first`` are queries to run before it, ``assignments`` the
    user variables that it sets, with their types.

    ``databases`` are those that it reads. ``volatile`` says that the same text can have another
    translation or result next time.
    """

    sql: str
    names: tuple[str, ...]
    types: tuple[Any, ...]
    converters: tuple[Callable[[Any], Any] | None, ...]
    databases: frozenset[str]
    volatile: bool = False
    first: tuple[str, ...] = ()
    assignments: tuple[tuple[str, Type], ...] = ()

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        """The columns of the result."""
        return tuple(map(_result_column, self.names, self.types))


_TYPE_CODES = {
    "null": TypeCode.NULL,
    "int": TypeCode.BIGINT,
    "decimal": TypeCode.DECIMAL,
    "float": TypeCode.FLOAT,
    "double": TypeCode.DOUBLE,
    "string": TypeCode.TEXT,
    "date": TypeCode.DATE,
    "datetime": TypeCode.DATETIME,
    "time": TypeCode.TIME,
    "year": TypeCode.YEAR,
    "json": TypeCode.JSON,
    "bytes": TypeCode.BLOB,
}


def _result_column(name: str, kind: Type) -> ResultColumn:
    code = TypeCode.BIT if kind.bits else _TYPE_CODES[kind.kind]
    if code is TypeCode.DECIMAL:
        return ResultColumn(name, code, kind.precision or None, kind.scale, kind.nullable)
    return ResultColumn(name, code, nullable=kind.nullable)


def translate(tree: exp.Expr, context: CompileContext) -> Translation:
    """Translate a query. Raises StatementError as MySQL does, or for an unsupported query."""
    try:
        found = all_nodes(tree)
        assignments = [node for node in found if isinstance(node, exp.PropertyEQ)]
        context.assigned = frozenset(node.this.this.name.lower() for node in assignments)
        _check_tables(found, context)
        query = compile_query(tree, root_scope(context))
        if "ONLY_FULL_GROUP_BY" in context.modes:
            _check_groups(tree, found, context)
    except RecursionError as e:
        raise unsupported("expressions that are nested so deeply") from e
    if "".join([query.sql, *context.first]).count(ASSIGNS) != len(assignments):
        raise unsupported("an assignment to a variable here")
    readers = tuple(result_converter(k) for k in query.types)
    return Translation(
        query.sql,
        tuple(query.names),
        query.types,
        readers,
        frozenset(context.databases),
        context.volatile or bool(assignments),
        tuple(context.first),
        tuple(context.assignments),
    )


def _check_tables(nodes: list[exp.Expr], context: CompileContext) -> None:
    """Raise StatementError 1248, 1046, 1049, 1146 or 1235. MySQL reads the whole statement before
    it opens the tables, opens all of them, and rejects some subqueries, before it resolves names.
    """
    if any(_lacks_alias(n) for n in nodes if isinstance(n, exp.Subquery)):
        raise mysql_error(1248)
    common = {n.alias.lower() for n in nodes if isinstance(n, exp.CTE)}
    tables = [n for n in nodes if isinstance(n, exp.Table) and isinstance(n.this, exp.Identifier)]
    for table in sorted(tables, key=lambda t: int(t.this.meta.get("start", 0))):
        database = (table.db or context.database).lower()
        low = table.name.lower()
        if (
            table.catalog
            or database in SYSTEM_SCHEMAS
            or (not table.db and low in common | {"dual"})
        ):
            continue
        if not database:
            raise mysql_error(1046)
        if database not in context.catalog.databases:
            raise mysql_error(1049, table.db or database)
        if context.catalog.table(database, low) is None:
            raise mysql_error(1146, f"{database}.{low}")
    for node in nodes:
        if not isinstance(node, (exp.In, exp.All, exp.Any)):
            continue
        inner = node.args.get("query") if isinstance(node, exp.In) else node.this
        while isinstance(inner, (exp.Subquery, exp.Paren)):
            inner = inner.this
        if isinstance(inner, exp.Query) and inner.args.get("limit") is not None:
            raise mysql_error(1235, "LIMIT & IN/ALL/ANY/SOME subquery")


def _lacks_alias(node: exp.Subquery) -> bool:
    """Return whether a subquery is a table of FROM without a name."""
    if not isinstance(node.this, exp.Query) or isinstance(node.this, exp.Subquery):
        return False
    above: exp.Expr | None = node
    while isinstance(above, exp.Subquery) and not above.alias:
        above = above.parent
    return isinstance(above, (exp.From, exp.Join))


def _check_groups(tree: exp.Expr, nodes: list[exp.Expr], context: CompileContext) -> None:
    """Raise the StatementError of ONLY_FULL_GROUP_BY, if any."""
    if not any(isinstance(node, _GROUPING_NODES) for node in nodes):
        return

    def schema(database: str, name: str) -> TableKeys | None:
        table = context.catalog.table(database, name)
        return None if table is None else _table_keys(table)

    error = group_by_error(tree, schema, context.database)
    if error is not None:
        raise error


_GROUPING_NODES = (exp.Group, exp.Anonymous, exp.GroupConcat, exp.Distinct)


def _table_keys(table: Table) -> TableKeys:
    nullable = {c.name.lower() for c in table.columns if c.nullable}
    keys = [frozenset(c.lower() for c in i.columns) for i in table.indexes if i.unique]
    return TableKeys(
        tuple(c.name for c in table.columns), tuple(k for k in keys if not k & nullable)
    )
