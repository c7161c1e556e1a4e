"""Reads from the golds of a task which values and which joins they name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from intercode.core.types import Task
from intercode_lab.variants.sql.database import Database

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Like, exp.In, exp.Between)
Place = tuple[str, int]
"""A table by its name in lower case, and the position of a column."""


@dataclass(frozen=True, slots=True)
class NamedValues:
    """What the golds and the query of a task name.

    ``tables``: the tables that the golds read. ``values``: the texts of the values that each column
    is compared with, and of those that the query names; patterns of LIKE have their ``%``.
    ``joins``: pairs of columns that the golds compare.
    """

    tables: frozenset[str] = frozenset()
    values: Mapping[Place, tuple[str, ...]] = field(default_factory=dict)
    joins: tuple[tuple[Place, Place], ...] = ()


def read_golds(task: Task, database: Database, dialect: str) -> NamedValues:
    """Return what the golds of a task name. A gold that cannot be parsed names nothing."""
    tables: set[str] = set()
    values: dict[Place, list[str]] = defaultdict(list)
    joins: list[tuple[Place, Place]] = []
    for gold in task.golds:
        try:
            tree = sqlglot.parse_one(gold, read=dialect)
        except SqlglotError:
            continue
        names = _Names(tree, database)
        tables.update(names.aliases.values())
        for node in tree.find_all(*_COMPARISONS):
            places = [p for c in node.find_all(exp.Column) for p in names.columns_meant(c)]
            for literal in node.find_all(exp.Literal, exp.Column):
                text = names.literal(literal)
                for place in places if text is not None else ():
                    values[place].append(str(text))
            if isinstance(node, exp.EQ) and len(places) == 2 and places[0][0] != places[1][0]:
                joins.append((places[0], places[1]))
    for place, texts in _named_in_query(task.query, database, tables).items():
        values[place] += texts
    unique = {place: tuple(dict.fromkeys(texts)) for place, texts in values.items()}
    return NamedValues(frozenset(tables), unique, tuple(dict.fromkeys(joins)))


class _Names:
    """The tables of a statement by alias, and the columns that its names mean."""

    def __init__(self, tree: exp.Expr, database: Database) -> None:
        self._database = database
        self.aliases: dict[str, str] = {}
        for table in tree.find_all(exp.Table):
            name = table.name.lower()
            if name in database.tables:
                self.aliases[(table.alias or name).lower()] = name

    def columns_meant(self, column: exp.Column) -> list[Place]:
        """Return the columns that a name may mean: one, or none, or several without an alias."""
        alias = column.table.lower()
        tables = [self.aliases[alias]] if alias in self.aliases else self.aliases.values()
        found = []
        for table in dict.fromkeys(tables if not alias or alias in self.aliases else ()):
            at = self._database.tables[table].position(column.name)
            if at is not None:
                found.append((table, at))
        return found

    def literal(self, node: exp.Expr) -> str | None:
        """Return the text of a literal, also of a quoted name that is no column: a text in
        SQLite."""
        if isinstance(node, exp.Literal):
            return node.name
        if not isinstance(node, exp.Column) or not node.this.args.get("quoted") or node.table:
            return None
        return node.name if not self.columns_meant(node) else None


def _named_in_query(query: str, database: Database, tables: set[str]) -> dict[Place, list[str]]:
    """Return the texts of the tables that stand in the query as words."""
    low = query.lower()
    found: dict[Place, list[str]] = defaultdict(list)
    for name in sorted(tables):
        table = database.tables[name]
        for at in range(len(table.columns)):
            texts = {row[at].strip() for row in table.rows if isinstance(row[at], str)}
            for text in sorted(t for t in texts if len(t) > 2 and t.lower() in low):
                if re.search(rf"(?<!\w){re.escape(text.lower())}(?!\w)", low):
                    found[name, at].append(text)
    return found
