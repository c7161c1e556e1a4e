"""Functional dependency: which columns are determined by a set of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from sqlglot import exp

ColumnName = tuple[str, str]
ColumnResolver = Callable[[exp.Column], ColumnName | None]


class KeyedSource(Protocol):
    """A table with its columns and keys."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def keys(self) -> tuple[frozenset[str], ...]: ...


class DeterminedColumns:
    """A set of determined columns and the rules by which it grows."""

    def __init__(self, sources: Mapping[str, KeyedSource]) -> None:
        self._sources = sources
        self._determined: set[ColumnName] = set()
        self._equalities: list[tuple[ColumnName, ColumnName]] = []

    def __contains__(self, column: ColumnName) -> bool:
        return column in self._determined

    def add(self, columns: Iterable[ColumnName]) -> None:
        """Add columns that are determined."""
        self._determined |= set(columns)

    def add_equality(self, left: ColumnName | None, right: ColumnName | None, both: bool) -> None:
        """Record that ``left`` determines ``right``, and the reverse if ``both``. None stands for a
        constant."""
        if left is None and right is not None:
            self._determined.add(right)
        elif right is None and left is not None:
            self._determined.add(left)
        elif left is not None and right is not None:
            self._equalities.append((left, right))
            if both:
                self._equalities.append((right, left))

    def compute_closure(self) -> None:
        """Add every column that follows from the known columns, the equalities and the keys."""
        size = -1
        while size != len(self._determined):
            size = len(self._determined)
            for left, right in self._equalities:
                if left in self._determined:
                    self._determined.add(right)
            for name, source in self._sources.items():
                if any(all((name, k) in self._determined for k in key) for key in source.keys):
                    self._determined |= {(name, c.lower()) for c in source.columns}


def equalities(
    node: exp.Select, find: ColumnResolver
) -> Iterator[tuple[ColumnName | None, ColumnName | None, bool]]:
    """Yield the equalities that hold for every row of a SELECT, from WHERE and the joins.

    Each is a pair of columns, or a column and None for a constant. The flag says whether it holds
    in both directions; that of an outer join holds only from the outer to the inner side.
    """
    where = node.args.get("where")
    if where is not None:
        for part in conjuncts(where.this):
            yield from _equality(part, find, True)
    for join in node.args.get("joins") or ():
        side = (join.args.get("side") or "").upper()
        if join.args.get("on") is not None:
            for part in conjuncts(join.args["on"]):
                for left, right, _ in _equality(part, find, True):
                    yield from _join_equality(left, right, side, join)
        for name in join.args.get("using") or ():
            left = find(exp.column(name.name))
            other = join.this.alias_or_name.lower()
            yield left, (other, name.name.lower()), not side


def _join_equality(
    left: ColumnName | None, right: ColumnName | None, side: str, join: exp.Join
) -> Iterator[tuple[ColumnName | None, ColumnName | None, bool]]:
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


def _equality(
    node: exp.Expr, find: ColumnResolver, both: bool
) -> Iterator[tuple[ColumnName | None, ColumnName | None, bool]]:
    if not isinstance(node, exp.EQ):
        return
    a, b = node.this, node.expression
    left = find(a) if isinstance(a, exp.Column) else None
    right = find(b) if isinstance(b, exp.Column) else None
    if left is not None and right is not None:
        yield left, right, both
    elif left is not None and _is_constant(b):
        yield left, None, both
    elif right is not None and _is_constant(a):
        yield None, right, both


def _is_constant(node: exp.Expr) -> bool:
    return isinstance(node, (exp.Literal, exp.Neg, exp.Boolean, exp.Parameter))
