"""Functional dependence: which columns are determined by columns that are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from sqlglot import exp

Column = tuple[str, str]
Finder = Callable[[exp.Column], Column | None]


class Source(Protocol):
    """A table's columns and keys."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def keys(self) -> tuple[frozenset[str], ...]: ...


class Dependence:
    """Columns that are determined; grows until nothing more follows."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self._sources = sources
        self._known: set[Column] = set()
        self._equal: list[tuple[Column, Column]] = []

    def __contains__(self, column: Column) -> bool:
        return column in self._known

    def learn(self, columns: Iterable[Column]) -> None:
        """These are determined."""
        self._known |= set(columns)

    def equal(self, left: Column | None, right: Column | None, both: bool) -> None:
        """``left`` determines ``right`` (None: a constant does), and the other way round where
        ``both``."""
        if left is None and right is not None:
            self._known.add(right)
        elif right is None and left is not None:
            self._known.add(left)
        elif left is not None and right is not None:
            self._equal.append((left, right))
            if both:
                self._equal.append((right, left))

    def close(self) -> None:
        """Draw every conclusion."""
        size = -1
        while size != len(self._known):
            size = len(self._known)
            for left, right in self._equal:
                if left in self._known:
                    self._known.add(right)
            for name, source in self._sources.items():
                if any(all((name, k) in self._known for k in key) for key in source.keys):
                    self._known |= {(name, c.lower()) for c in source.columns}


def equalities(
    node: exp.Select, find: Finder
) -> Iterator[tuple[Column | None, Column | None, bool]]:
    """The equalities that hold for every row of a SELECT: of WHERE and of the joins.

    A pair of columns, or a column and None for a constant; the flag tells whether it holds in both
    directions (an outer join's holds from the outer to the inner side).
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
                    yield from _joined(left, right, side, join)
        for name in join.args.get("using") or ():
            left = find(exp.column(name.name))
            other = join.this.alias_or_name.lower()
            yield left, (other, name.name.lower()), not side


def _joined(
    left: Column | None, right: Column | None, side: str, join: exp.Join
) -> Iterator[tuple[Column | None, Column | None, bool]]:
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
    """The parts of a condition that all must hold."""
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
    node: exp.Expr, find: Finder, both: bool
) -> Iterator[tuple[Column | None, Column | None, bool]]:
    if not isinstance(node, exp.EQ):
        return
    a, b = node.this, node.expression
    left = find(a) if isinstance(a, exp.Column) else None
    right = find(b) if isinstance(b, exp.Column) else None
    if left is not None and right is not None:
        yield left, right, both
    elif left is not None and _constant(b):
        yield left, None, both
    elif right is not None and _constant(a):
        yield None, right, both


def _constant(node: exp.Expr) -> bool:
    return isinstance(node, (exp.Literal, exp.Neg, exp.Boolean, exp.Parameter))
