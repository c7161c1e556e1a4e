"""UPDATE and DELETE of several tables: the rows that their join selects, once for each table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from intercode.sql.dialect.errors import mysql_error
from intercode.sql.embedded.catalog.catalog import Column, Table, quote_identifier
from intercode.sql.embedded.catalog.values import result_converter
from intercode.sql.embedded.compile.expressions import compile_condition, compile_scalar
from intercode.sql.embedded.compile.queries import root_scope
from intercode.sql.embedded.compile.scope import Scope, Source
from intercode.sql.embedded.compile.sources import from_clause
from intercode.sql.embedded.execute.context import SessionContext
from intercode.sql.embedded.execute.write_targets import (
    TargetRows,
    check_self_reference,
    resolve_default,
)


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
    """The joined tables of an UPDATE or DELETE.

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
        joined = from_clause(query, self._scope, compile_condition)
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
        makers: list[tuple[str, Any]] = []
        for node, column in zip(values, columns, strict=True):
            compiled = compile_scalar(resolve_default(node, column), self._scope)
            makers.append((compiled.sql, result_converter(compiled.type)))
        names = [c.name for c in table.columns]
        shown = [
            f"{source.alias}.rowid", *(f"{source.alias}.{quote_identifier(n)}" for n in names),
            *(sql for sql, _ in makers),
        ]  # fmt: skip
        text = self._from
        for one in self._scope.sources:
            text = text.replace(one.placeholder, one.sql())
        keys = [f"{s.alias}.rowid" for s in self._scope.sources if s.table is not None]
        self._session.connection.attach(self._context.databases)
        found = self._session.connection.sqlite.execute(
            f"SELECT {', '.join(shown)} FROM {text}{self._where} ORDER BY {', '.join(keys)}"
        ).fetchall()
        first: dict[int, tuple[int, dict[str, Any], list[Any]]] = {}
        size = len(names) + 1
        for row in found:
            if row[0] is None or row[0] in first:  # no match, or another match of the same row
                continue
            new = [
                v if v is None or read is None else read(v)
                for v, (_, read) in zip(row[size:], makers, strict=True)
            ]
            first[row[0]] = (row[0], dict(zip(names, row[1:size], strict=True)), new)
        return list(first.values())
