"""The compiler's data: expressions, sources, scopes and compiled queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from intercode_sql.dialect.errors import mysql_error, unsupported
from intercode_sql.dialect.parser import mysql_text
from intercode_sql.embedded.catalog.catalog import Catalog, Table
from intercode_sql.embedded.catalog.types import Type

CLAUSE_NAMES = {
    "select": "field list",
    "where": "where clause",
    "on": "on clause",
    "group": "group statement",
    "having": "having clause",
    "order": "order clause",
}
"""MySQL's names for the clauses of a query in its errors."""


ASSIGNS = "mysql_set_variable("
"""The beginning of an assignment to a user variable in SQLite's SQL."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression: SQLite's SQL and its type in MySQL.

    ``literal`` is the value of a literal constant. ``columns`` are the parts of a row value.
    ``aggregate`` says that it contains an aggregate, ``outer`` that it is a column of an outer
    query and therefore constant here. ``number`` is the SQL of its number, if that is not the
    number of its text.
    """

    sql: str
    type: Type
    literal: Any = None
    columns: tuple[Expression, ...] = ()
    aggregate: bool = False
    outer: bool = False
    number: str = ""


@dataclass(slots=True)
class Source:
    """An entry of FROM.

    ``alias`` is its name in SQLite, ``text`` the SQL that produces its rows. ``keys`` are the keys
    of its own row order, the most significant first. ``single`` says that it has at most one row.
    """

    name: str
    alias: str
    database: str
    columns: list[tuple[str, Type, str]]
    text: str
    keys: list[str] = field(default_factory=list)
    table: Table | None = None
    rows: int = 0
    single: bool = False
    numbered: bool = False
    nullable: bool = False
    used_columns: set[str] = field(default_factory=set)

    def find(self, name: str) -> Expression | None:
        low = name.lower()
        for shown, kind, sql in self.columns:
            if shown.lower() == low:
                self.used_columns.add(low)
                return Expression(sql, kind.as_nullable() if self.nullable else kind)
        return None

    def order_keys(self) -> list[str]:
        """Return the keys of its row order. A derived table is numbered at the first call."""
        if not self.keys and self.table is None:
            self.numbered = True
            self.keys = [f'{self.alias}."row number"']
        return self.keys

    @property
    def placeholder(self) -> str:
        """The placeholder of the source's SQL until it is known whether its rows are numbered."""
        return f"\x01{self.alias}\x01"

    def sql(self) -> str:
        """Return the source's SQL for a FROM clause."""
        if self.numbered:
            return (
                f'(SELECT *, ROW_NUMBER() OVER () AS "row number" FROM {self.text}) AS {self.alias}'
            )
        return f"{self.text} AS {self.alias}"


def _no_query_compiler(*_: Any) -> Any:
    raise unsupported("a query here")


@dataclass(slots=True)
class CompileContext:
    """State that all parts of one statement share while it is compiled.

    ``databases`` are those whose tables it reads. ``volatile`` says that its meaning depends on the
    time or the session, so its translation is not cached. ``compile`` compiles a subquery.
    """

    catalog: Catalog
    database: str
    modes: frozenset[str]
    variables: Mapping[str, Any]
    now: str = ""
    compile: Callable[..., CompiledQuery] = _no_query_compiler
    databases: set[str] = field(default_factory=set)
    volatile: bool = False
    count: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    session_values: Mapping[str, Any] = field(default_factory=dict)
    assigned: frozenset[str] = frozenset()
    """The names of the user variables that the statement sets."""
    assignments: list[tuple[str, Type]] = field(default_factory=list)
    """The name and the type of each assignment to a user variable."""
    first: list[str] = field(default_factory=list)
    """Queries that are run before the statement, for the variables that they set."""

    def new_alias(self) -> str:
        self.count += 1
        return f"s{self.count}"


@dataclass(slots=True)
class Scope:
    """One query block. ``ctes`` holds common table expressions by name, ``visible`` the sources
    that an ON clause sees."""

    context: CompileContext
    parent: Scope | None = None
    sources: list[Source] = field(default_factory=list)
    joined_columns: dict[str, Expression] = field(default_factory=dict)
    ctes: dict[str, Callable[[Scope, str], Source]] = field(default_factory=dict)
    clause: str = "select"
    aliases: dict[str, Expression] = field(default_factory=dict)
    groups: dict[str, Expression] = field(default_factory=dict)
    inside_aggregate: bool = False
    aggregated: bool = False
    windows: Mapping[str, exp.Window] = field(default_factory=dict)
    visible: Sequence[Source] | None = None

    def cte(self, name: str) -> Callable[[Scope, str], Source] | None:
        scope: Scope | None = self
        while scope is not None:
            if name.lower() in scope.ctes:
                return scope.ctes[name.lower()]
            scope = scope.parent
        return None

    def column(self, node: exp.Column) -> Expression:
        """Resolve a column's name. Raises StatementError 1052 or 1054."""
        name, table, database = node.name, node.table, node.db
        full_name = ".".join(p for p in (database, table, name) if p)
        found = self._find_in_block(name, table, database, full_name)
        if found is not None:
            return found
        scope = self.parent
        while scope is not None:
            found = scope._find_in_sources(name, table, database, full_name, scope.sources)
            if found is not None:
                return replace(found, outer=True)
            found = None if table else scope.aliases.get(name.lower())
            if found is not None:
                return _outer_alias(found, name, scope.clause)
            scope = scope.parent
        raise mysql_error(1054, full_name, CLAUSE_NAMES[self.clause])

    def _find_in_block(
        self, name: str, table: str, database: str, full_name: str
    ) -> Expression | None:
        sources = self.visible if self.clause == "on" and self.visible is not None else self.sources
        if self.clause == "having" and not self.inside_aggregate:
            return self._find_in_having(name, table, database, full_name)
        found = self._find_in_sources(name, table, database, full_name, sources)
        if found is None and not table and self.clause in ("order", "group"):
            return self.aliases.get(name.lower())
        return found

    def _find_in_having(
        self, name: str, table: str, database: str, full_name: str
    ) -> Expression | None:
        """Resolve a name in HAVING, which sees only the select list and the grouping columns."""
        low = name.lower()
        if not table and low in self.aliases:
            return self.aliases[low]
        found = self._find_in_sources(name, table, database, full_name, self.sources)
        if found is not None and any(
            found.sql == known.sql for known in (*self.aliases.values(), *self.groups.values())
        ):
            return found
        return None

    def _find_in_sources(
        self, name: str, table: str, database: str, full_name: str, sources: Sequence[Source]
    ) -> Expression | None:
        low = name.lower()
        if not table and low in self.joined_columns:
            return self.joined_columns[low]
        matches = []
        for source in sources:
            if table and source.name.lower() != table.lower():
                continue
            if database and source.database.lower() != database.lower():
                continue
            found = source.find(name)
            if found is not None:
                matches.append(found)
        if len(matches) > 1:
            raise mysql_error(1052, full_name, CLAUSE_NAMES[self.clause])
        return matches[0] if matches else None


def _outer_alias(found: Expression, name: str, clause: str) -> Expression:
    """Return the selected column of an outer query that a subquery names by its alias."""
    if not found.aggregate:
        return replace(found, outer=True)
    if clause == "select":
        raise mysql_error(1247, name, "reference to group function")
    raise unsupported(f"the aggregate {name} of an outer query in a subquery")


JoinedColumns = list[tuple[str, Expression, str]]
"""Columns in the order of ``*``: name, expression and the name of the source."""


@dataclass(slots=True)
class JoinedSources:
    """Sources that are joined. ``text`` is their SQL; ``list_columns`` lists the columns of
    ``*``."""

    text: str
    sources: list[Source]
    list_columns: Callable[[], JoinedColumns] = list
    outer: bool = False

    @property
    def columns(self) -> JoinedColumns:
        """The columns in the order of ``*``."""
        return self.list_columns()


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A query in SQLite's SQL. Its columns are named c0, c1, …

    ``single`` says that it returns at most one row, ``plain`` that its SQL has the form SELECT …
    FROM …. ``rows`` estimates how many rows it reads.
    """

    sql: str
    names: list[str]
    types: tuple[Type, ...]
    single: bool = False
    rows: int = 10
    plain: bool = False


@dataclass(slots=True)
class SelectParts:
    """The compiled parts of a SELECT."""

    node: exp.Select
    scope: Scope
    joined: JoinedSources | None
    names: list[str] = field(default_factory=list)
    columns: list[Expression] = field(default_factory=list)
    where: str = ""
    groups: list[Expression] = field(default_factory=list)
    having: str = ""
    order: list[tuple[Expression, bool]] = field(default_factory=list)
    distinct: bool = False
    limit: str = ""


# ---------------------------------------------------------------- expressions by their kind
Compiler = Callable[[Any, Scope], Expression]

COMPILERS: dict[type[exp.Expr], Compiler] = {}
"""Functions that compile expressions, by the type of their tree. That of ``exp.Func`` is for all
calls that have none."""


def compiles(*kinds: type[exp.Expr]) -> Callable[[Compiler], Compiler]:
    """Register a function that compiles the trees of these types."""

    def register(function: Compiler) -> Compiler:
        COMPILERS.update(dict.fromkeys(kinds, function))
        return function

    return register


def compile_expression(node: exp.Expr, scope: Scope) -> Expression:
    """Compile an expression. Raises StatementError as MySQL does, or for an unsupported
    expression."""
    found = COMPILERS.get(type(node))
    if found is None and isinstance(node, exp.Func):
        found = COMPILERS[exp.Func]
    if found is None:
        raise unsupported(f"the expression {mysql_text(node)[:80]}")
    return found(node, scope)


def compile_scalar(node: exp.Expr, scope: Scope) -> Expression:
    """Compile an expression that must be one value. Raises StatementError 1241 for a row."""
    compiled = compile_expression(node, scope)
    if compiled.columns:
        raise mysql_error(1241, 1)
    return compiled
