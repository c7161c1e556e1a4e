"""Functional dependency: which columns are determined by a set of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

ColumnName = tuple[str, str]
"""A source and a column, by name in lower case."""
ColumnResolver = Callable[[exp.Column], ColumnName | None]


Equality = tuple[ColumnName | None, ColumnName | None, bool]
"""Two equal columns, or a column and None for a constant, and whether each determines the other or
only the first the second."""


@dataclass(frozen=True, slots=True)
class TableKeys:
    """The columns of a table, and the sets of columns that determine a row: the primary key and
    unique keys over columns that are NOT NULL."""

    columns: tuple[str, ...]
    keys: tuple[frozenset[str], ...] = ()


def determined_columns(
    start: Iterable[ColumnName], equal: Iterable[Equality], sources: Mapping[str, TableKeys]
) -> set[ColumnName]:
    """Return every column that follows from known columns, equalities and keys."""
    found = set(start)
    rules: list[tuple[ColumnName, ColumnName]] = []
    for left, right, both in equal:
        if left is None or right is None:
            found |= {column for column in (left, right) if column is not None}
        else:
            rules += [(left, right), (right, left)] if both else [(left, right)]
    size = -1
    while size != len(found):
        size = len(found)
        found |= {right for left, right in rules if left in found}
        for name, source in sources.items():
            if any(all((name, k) in found for k in key) for key in source.keys):
                found |= {(name, c.lower()) for c in source.columns}
    return found


def equalities(node: exp.Select, find: ColumnResolver) -> Iterator[Equality]:
    """Yield the equalities that hold for every row of a SELECT, from WHERE and the joins. That of
    an outer join holds only from the outer to the inner side."""
    where = node.args.get("where")
    if where is not None:
        for part in conjuncts(where.this):
            yield from _equality(part, find)
    for join in node.args.get("joins") or ():
        side = (join.args.get("side") or "").upper()
        if join.args.get("on") is not None:
            for part in conjuncts(join.args["on"]):
                for left, right, _ in _equality(part, find):
                    yield from _join_equality(left, right, side, join)
        for name in join.args.get("using") or ():
            left = find(exp.column(name.name))
            other = join.this.alias_or_name.lower()
            yield left, (other, name.name.lower()), not side


def _join_equality(
    left: ColumnName | None, right: ColumnName | None, side: str, join: exp.Join
) -> Iterator[Equality]:
    if not side:
        yield left, right, True
        return
    if left is None or right is None:
        return
    inner = join.this.alias_or_name.lower()
    if side == "LEFT":
        yield (left, right, False) if right[0] == inner else (right, left, False)
    else:
        yield (right, left, False) if right[0] == inner else (left, right, False)


def conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the parts of a condition that are joined by AND."""
    todo = [node]
    while todo:
        one = todo.pop()
        if isinstance(one, exp.And):
            todo += [one.expression, one.this]
        elif isinstance(one, exp.Paren):
            todo.append(one.this)
        else:
            yield one


def _equality(node: exp.Expr, find: ColumnResolver) -> Iterator[Equality]:
    if not isinstance(node, exp.EQ):
        return
    a, b = node.this, node.expression
    left = find(a) if isinstance(a, exp.Column) else None
    right = find(b) if isinstance(b, exp.Column) else None
    if left is not None and right is not None:
        yield left, right, True
    elif left is not None and _is_constant(b):
        yield left, None, True
    elif right is not None and _is_constant(a):
        yield None, right, True


def _is_constant(node: exp.Expr) -> bool:
    return isinstance(node, (exp.Literal, exp.Neg, exp.Boolean, exp.Parameter))
