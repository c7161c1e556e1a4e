"""Finds conditions of golds that have no effect on the data: answers that ignore them look right.

Each mutant is the gold without one condition: without a WHERE or HAVING, without one side of AND or
OR, or with one side only of INTERSECT, UNION or EXCEPT.
"""

from __future__ import annotations

from collections.abc import Iterator

import sqlglot
from sqlglot import exp

from intercode.core.types import SUCCESS_THRESHOLD, State, Task
from intercode.environments.sql.reward import standard
from intercode.environments.sql.row_order import rank_rows
from intercode.sql import SqlSession

SECONDS = 30.0


def idle_conditions(task: Task, gold: str, session: SqlSession) -> list[str]:
    """Return the mutants of a gold that the standard reward scores as the gold itself."""
    rows = session.run(gold, SECONDS).rows
    if rows is None:
        return []
    ranks = rank_rows(gold, rows, lambda statement: session.run(statement, SECONDS).rows)
    state = State(rows=rows, ranks=ranks)
    idle = []
    for mutant in mutants(gold):
        result = session.run(mutant, SECONDS).rows
        if result is not None:
            score = standard(task, State(rows=(*result,)), state)
            idle += [mutant] if score.value >= SUCCESS_THRESHOLD else []
    return idle


def mutants(gold: str) -> Iterator[str]:
    """Yield the gold without each of its conditions."""
    tree = sqlglot.parse_one(gold.strip().rstrip(";"), read="mysql")
    for n, node in enumerate(tree.walk()):
        if isinstance(node, exp.And | exp.Or):
            yield _with(tree, n, node.left)
            yield _with(tree, n, node.right)
        elif isinstance(node, exp.Where | exp.Having) and not _is_certain(node):
            yield _with(tree, n, None)
        elif isinstance(node, exp.SetOperation):
            yield _with(tree, n, node.left)
            if not isinstance(node, exp.Except):
                yield _with(tree, n, node.right)


def _is_certain(node: exp.Expression) -> bool:
    """Return whether a condition is COUNT(*) >= 1, which every group fulfils."""
    return node.this.sql("mysql").upper() == "COUNT(*) >= 1"


def _with(tree: exp.Expression, n: int, replacement: exp.Expression | None) -> str:
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
    return copy.sql("mysql")
