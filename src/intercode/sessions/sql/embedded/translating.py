"""From a statement's text to what SQLite runs, kept for the next who says the same."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from intercode.sessions.sql.embedded.catalog import Catalog, Table
from intercode.sessions.sql.embedded.information import SCHEMAS
from intercode.sessions.sql.embedded.queries import compile_query, start
from intercode.sessions.sql.embedded.scope import Unit
from intercode.sessions.sql.embedded.values import reader
from intercode.sessions.sql.faults import StatementError, fault, unable
from intercode.sessions.sql.group_by import Keyed, group_by_fault

_KEPT = 4096


@dataclass(frozen=True, slots=True)
class Translation:
    """A query in SQLite's words. ``used``: the databases that it reads. ``volatile``: the next time
    it may mean or give something else."""

    sql: str
    names: tuple[str, ...]
    types: tuple[Any, ...]
    readers: tuple[Callable[[Any], Any] | None, ...]
    used: frozenset[str]
    volatile: bool = False


class Translations:
    """Translations and errors by catalog, database, modes and text."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Any, ...], Translation | StatementError] = OrderedDict()

    def find(self, key: tuple[Any, ...]) -> Translation | None:
        """What is kept. Raises the StatementError that was found before."""
        found = self._kept.get(key)
        if isinstance(found, StatementError):
            raise StatementError(found.number, found.message)
        return found

    def keep(self, key: tuple[Any, ...], value: Translation | StatementError) -> None:
        """Keep one; the oldest makes room."""
        self._kept[key] = value
        while len(self._kept) > _KEPT:
            try:
                self._kept.popitem(last=False)
            except KeyError:  # another thread was quicker
                return


def translated(tree: exp.Expr, unit: Unit) -> Translation:
    """A query's translation. Raises StatementError as MySQL does, or for what cannot be done."""
    try:
        _check_tables(tree, unit)
        query = compile_query(tree, start(unit))
        if "ONLY_FULL_GROUP_BY" in unit.modes:
            _check_groups(tree, unit)
    except RecursionError as e:
        raise unable("expressions that lie so deep in each other") from e
    readers = tuple(reader(k) for k in query.types)
    return Translation(
        query.sql, tuple(query.names), query.types, readers, frozenset(unit.used), unit.volatile
    )


def _check_tables(tree: exp.Expr, unit: Unit) -> None:
    """Raises StatementError 1046, 1049, 1146 or 1235: MySQL opens all tables, and refuses some
    subqueries, before it reads a name."""
    common = {c.alias.lower() for c in tree.find_all(exp.CTE)}
    named = [t for t in tree.find_all(exp.Table) if isinstance(t.this, exp.Identifier)]
    for table in sorted(named, key=lambda t: int(t.this.meta.get("start", 0))):
        database = (table.db or unit.database).lower()
        low = table.name.lower()
        if table.catalog or database in SCHEMAS or (not table.db and low in common | {"dual"}):
            continue
        if not database:
            raise fault(1046)
        if database not in unit.catalog.databases:
            raise fault(1049, table.db or database)
        if unit.catalog.table(database, low) is None:
            raise fault(1146, f"{database}.{low}")
    for node in tree.find_all(exp.In, exp.All, exp.Any):
        inner = node.args.get("query") if isinstance(node, exp.In) else node.this
        while isinstance(inner, (exp.Subquery, exp.Paren)):
            inner = inner.this
        if isinstance(inner, exp.Query) and inner.args.get("limit") is not None:
            raise fault(1235, "LIMIT & IN/ALL/ANY/SOME subquery")


def _check_groups(tree: exp.Expr, unit: Unit) -> None:
    """Raises StatementError where ONLY_FULL_GROUP_BY forbids a column."""
    if tree.find(*_GROUPING) is None:
        return
    schema = _Schema(unit.catalog)
    error = group_by_fault(tree, schema, unit.database)
    if error is not None:
        raise error


_GROUPING = (exp.Group, exp.Anonymous, exp.GroupConcat, exp.Distinct)


class _Schema(dict[str, Mapping[str, Keyed]]):
    """The catalog as the rule of groups sees it, worked out as it is asked for."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__()
        self._catalog = catalog

    def get(self, name: str, default: Any = None) -> Any:
        """The tables of a database."""
        tables = self._catalog.databases.get(name)
        return default if tables is None else {k: _keyed(t) for k, t in tables.items()}


def _keyed(table: Table) -> Keyed:
    nullable = {c.name.lower() for c in table.columns if c.nullable}
    keys = [frozenset(c.lower() for c in i.columns) for i in table.indexes if i.unique]
    return Keyed(tuple(c.name for c in table.columns), tuple(k for k in keys if not k & nullable))
