"""Comparisons as MySQL makes them: what is compared as strings, numbers or moments."""

from __future__ import annotations

from dataclasses import replace

from intercode.sql.dialect.errors import fault
from intercode.sql.embedded.catalog.collations import collate
from intercode.sql.embedded.catalog.types import BOOL, SURE, Type
from intercode.sql.embedded.catalog.values import moment_of
from intercode.sql.embedded.compile.conversions import as_moment, as_number, as_text
from intercode.sql.embedded.compile.scope import Ex

_ORDERED = frozenset({"<", "<=", ">", ">="})


def compared(op: str, left: Ex, right: Ex) -> Ex:
    """``left op right``; op is SQLite's: = <> < <= > >= IS. Rows are compared part by part.

    Raises StatementError 1241 for rows of different sizes.
    """
    if left.columns or right.columns:
        return _rows(op, left, right)
    left, right, collation = aligned(left, right, op in _ORDERED)
    nullable = op != "IS" and (left.type.nullable or right.type.nullable)
    return Ex(f"({left.sql} {op} {right.sql}{collation})", BOOL if nullable else SURE)


def aligned(left: Ex, right: Ex, ordered: bool) -> tuple[Ex, Ex, str]:
    """Both sides in the type in which MySQL compares them, and the COLLATE clause."""
    a, b = left.type, right.type
    if a.kind == "null" or b.kind == "null":
        return left, right, ""
    if a.kind == "json" or b.kind == "json":
        return as_text(left), as_text(right), " COLLATE BINARY"
    if a.moment or b.moment:
        return (*_moments(left, right), "")
    if a.number or b.number:
        return as_number(left), as_number(right), ""
    return as_text(left), as_text(right), collate(ordered, _as_text(a), _as_text(b))


def _as_text(kind: Type) -> Type:
    if kind.kind == "bytes":
        return replace(kind, kind="string", collation="bin", strong=True)
    return kind


def _moments(left: Ex, right: Ex) -> tuple[Ex, Ex]:
    kinds = {e.type.kind for e in (left, right) if e.type.moment}
    for one, other in ((left, right), (right, left)):
        if one.type.number and one.literal is None:
            return as_number(left), as_number(right)
        if one.type.kind == "time" and not other.type.moment and other.type.number:
            return as_number(left), as_number(right)
    if "time" in kinds and len(kinds) > 1:
        kind = "datetime"
    else:
        kind = "datetime" if "datetime" in kinds else kinds.pop()
    for ex in (left, right):
        if kind == "date" and isinstance(ex.literal, str):
            moment = moment_of(ex.literal)
            if moment is not None and moment[1] != "00:00:00":
                kind = "datetime"
    return as_moment(left, kind), as_moment(right, kind)


def _rows(op: str, left: Ex, right: Ex) -> Ex:
    a, b = left.columns or (left,), right.columns or (right,)
    if len(a) != len(b):
        raise fault(1241, len(a))
    pairs = [compared("IS" if op == "IS" else "=", x, y) for x, y in zip(a, b, strict=True)]
    same = " AND ".join(p.sql for p in pairs)
    if op in ("=", "IS"):
        return Ex(f"({same})", BOOL)
    if op == "<>":
        return Ex(f"(NOT ({same}))", BOOL)
    sql = compared(op, a[-1], b[-1]).sql
    for x, y in list(zip(a, b, strict=True))[-2::-1]:
        strict = compared(op.rstrip("="), x, y).sql
        sql = f"({strict} OR ({compared('=', x, y).sql} AND {sql}))"
    return Ex(sql, BOOL)
