"""Makes variants of an SQL task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from intercode.core.types import Task
from intercode.environments.base.env import InterCodeEnv
from intercode_lab.families.choices import WORDS, Choices
from intercode_lab.variants.makers import VariantMaker
from intercode_lab.variants.sql.database import (
    Database,
    FilledTable,
    Row,
    read_database,
    write_variant,
)
from intercode_lab.variants.sql.golds import NamedValues, Place, read_golds
from intercode_lab.variants.sql.rows import other_rows
from intercode_lab.variants.sql.values import kind_of


# Statements that are a gold without one of its conditions.
#
# They are near solutions: each ignores a part of the query and is right only where that part has no
# effect.
def near_solutions(task: Task) -> tuple[str, ...]:
    """Return the mutants of the main gold of a task. A gold that cannot be parsed has none."""
    dialect = "sqlite" if task.database and task.database.kind == "sqlite" else "mysql"
    try:
        return tuple(mutants(task.gold or "", dialect))
    except SqlglotError:
        return ()


def mutants(gold: str, dialect: str = "mysql") -> Iterator[str]:
    """Yield a gold without each of its conditions: without a WHERE or HAVING, without one side of
    AND or OR, or with one side only of INTERSECT, UNION or EXCEPT."""
    tree = sqlglot.parse_one(gold.strip().rstrip(";"), read=dialect)
    for n, node in enumerate(tree.walk()):
        if isinstance(node, exp.And | exp.Or):
            yield _with(tree, n, node.left, dialect)
            yield _with(tree, n, node.right, dialect)
        elif isinstance(node, exp.Where | exp.Having) and not _is_certain(node):
            yield _with(tree, n, None, dialect)
        elif isinstance(node, exp.SetOperation):
            yield _with(tree, n, node.left, dialect)
            if not isinstance(node, exp.Except):
                yield _with(tree, n, node.right, dialect)


def _is_certain(node: exp.Expr) -> bool:
    """Return whether a condition is COUNT(*) >= 1, which every group fulfils."""
    return bool(node.this.sql("mysql").upper() == "COUNT(*) >= 1")


def _with(tree: exp.Expr, n: int, replacement: exp.Expr | None, dialect: str) -> str:
    """Return the tree with another node at the place ``n`` of the walk, as a statement."""
    copy = tree.copy()
    node = list(copy.walk())[n]
    if node is copy:
        assert replacement is not None
        copy = replacement.copy()
    elif replacement is None:
        node.pop()
    else:
        node.replace(replacement.copy())
    return copy.sql(dialect)


def make_variant(env: InterCodeEnv, seed: int) -> Task | None:
    """Return the task of an environment with other rows in its database, or None without one.

    The database is a file in the cache, of the same kind as the task's.
    """
    task = env.task
    if task.database is None:
        return None
    database = read_database(task.database)
    named = read_golds(task, database, "sqlite" if task.database.kind == "sqlite" else "mysql")
    choices = Choices("rows", task.id, seed)
    varied = other_rows(with_rows(database, named, choices), named, choices)
    path = write_variant(task.database, varied)
    return replace(task, database=replace(task.database, path=path))


MAKER = VariantMaker(make_variant, near_solutions)


# Invents rows for empty tables, from the types and names of their columns.
_ROWS = 24
_WORDS = 5  # different texts of a column that names nothing


def with_rows(database: Database, named: NamedValues, choices: Choices) -> Database:
    """Return a database whose empty tables have rows, if the golds read them."""
    if all(database.tables[name].rows for name in named.tables):
        return database
    tables = dict(database.tables)
    for name, table in database.tables.items():
        if not table.rows:
            tables[name] = replace(table, rows=tuple(map(tuple, _rows(table, choices))))
    keys = [(child, parent) for child, parent in _links(database, named)]
    for (child, at), (parent, there) in keys:
        if not database.tables[child].rows:
            values = [row[there] for row in tables[parent].rows]
            rows = [list(row) for row in tables[child].rows]
            for row in rows:
                row[at] = choices.one(values)
            tables[child] = replace(tables[child], rows=tuple(map(tuple, rows)))
    return replace(database, tables=tables)


def _links(database: Database, named: NamedValues) -> list[tuple[Place, Place]]:
    """Return the columns of links, declared or named by golds, with the key that each is of."""
    found = []
    for name, table in database.tables.items():
        for key in table.foreign_keys:
            parent = database.tables.get(key.parent)
            there = (
                parent.position(key.parent_columns[0]) if parent and key.parent_columns else None
            )
            if there is not None:
                found.append(((name, key.columns[0]), (key.parent, there)))
    for pair in named.joins:
        for child, (parent_name, there) in (pair, pair[::-1]):
            table = database.tables[parent_name]
            if table.primary and table.keys[0] == (there,):
                found.append((child, (parent_name, there)))
    return found


def _rows(table: FilledTable, choices: Choices) -> list[Row]:
    columns = [_column(table, at, choices) for at in range(len(table.columns))]
    return [list(row) for row in zip(*columns, strict=True)]


def _column(table: FilledTable, at: int, choices: Choices) -> list[Any]:
    name, kind = table.columns[at].lower(), kind_of((), table.types[at])
    if (at,) in table.keys and kind == "number":
        return list(range(1, _ROWS + 1))
    if kind == "number":
        top = 60 if "age" in name else 900
        return [10 + choices.index(top) for _ in range(_ROWS)]
    if kind == "date":
        return [
            f"{1980 + choices.index(40)}-{1 + choices.index(12):02}-{1 + choices.index(28):02}"
            for _ in range(_ROWS)
        ]
    if "name" in name or (at,) in table.keys:
        firsts, seconds = (choices.some(WORDS, len(WORDS)) for _ in range(2))
        pairs = [f"{a} {b}".title() for b in seconds[:3] for a in firsts]
        return pairs[:_ROWS]
    words = choices.some(WORDS, _WORDS)
    return [choices.one(words) for _ in range(_ROWS)]
