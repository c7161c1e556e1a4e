"""Statements that are a gold without one of its conditions.

They are near solutions: each ignores a part of the query and is right only where that part has no
effect.
"""

from __future__ import annotations

from collections.abc import Iterator

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from intercode.core.types import Task


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
