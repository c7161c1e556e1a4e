"""Aggregate functions: their types, and what SQLite lacks of them."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from intercode.sql.dialect.errors import fault, near, unable
from intercode.sql.dialect.keywords import AGGREGATES
from intercode.sql.embedded.catalog.collations import collate
from intercode.sql.embedded.catalog.types import (
    DOUBLE,
    INT,
    SCALE_STEP,
    Type,
    decimal,
    digits,
    joined,
)
from intercode.sql.embedded.compile.arithmetic import Maker
from intercode.sql.embedded.compile.conversions import as_number, as_text, quoted
from intercode.sql.embedded.compile.scope import Ex, Scope

__all__ = ["AGGREGATES", "aggregate", "group_concat"]

_SPREAD = {
    "STD": "mysql_stddev_pop", "STDDEV": "mysql_stddev_pop", "STDDEV_POP": "mysql_stddev_pop",
    "STDDEV_SAMP": "mysql_stddev_samp", "VARIANCE": "mysql_var_pop", "VAR_POP": "mysql_var_pop",
    "VAR_SAMP": "mysql_var_samp", "BIT_AND": "mysql_bit_and", "BIT_OR": "mysql_bit_or",
    "BIT_XOR": "mysql_bit_xor",
}  # fmt: skip


_NUMBER = replace(INT, nullable=False)


def aggregate(name: str, args: list[exp.Expr], scope: Scope, make: Maker) -> Ex:
    """A call of an aggregate. Raises StatementError 1111 where none may stand."""
    distinct = bool(args) and isinstance(args[0], exp.Distinct)
    inner = list(args[0].expressions) if distinct else args
    made = _arguments(inner, scope, make)
    if name == "COUNT":
        return _count(made, distinct, bool(inner) and isinstance(inner[0], exp.Star))
    if len(made) != 1 or (inner and isinstance(inner[0], exp.Star)):
        raise near(name + "(", len(name)) if not made else fault(1582, name)
    (value,) = made
    if value.columns:
        raise fault(1241, 1)
    word = "DISTINCT " * distinct
    if name in ("MIN", "MAX"):
        clause = collate(True, value.type) if value.type.kind == "string" else ""
        return Ex(f"{name}({value.sql}{clause})", value.type.maybe(), aggregate=True)
    number = as_number(value)
    if name in ("SUM", "AVG"):
        return Ex(_total(name, word, number), _total_type(name, number.type), aggregate=True)
    if name in _SPREAD:
        kind = INT if name.startswith("BIT") else DOUBLE
        return Ex(f"{_SPREAD[name]}({word}{number.sql})", kind, aggregate=True)
    raise unable(f"the aggregate {name}")


def _arguments(nodes: list[exp.Expr], scope: Scope, make: Maker) -> list[Ex]:
    if scope.clause in ("where", "on", "group") or scope.inside_aggregate:
        raise fault(1111)
    scope.aggregated = True
    scope.inside_aggregate = True
    try:
        return [make(n, scope) for n in nodes if not isinstance(n, exp.Star)]
    finally:
        scope.inside_aggregate = False


def _count(made: list[Ex], distinct: bool, star: bool) -> Ex:
    kind = _NUMBER
    if star or not made:
        return Ex("COUNT(*)", kind, aggregate=True)
    if not distinct:
        if len(made) > 1:
            raise fault(1064, ", ...", 1)
        return Ex(f"COUNT({made[0].sql})", kind, aggregate=True)
    if len(made) == 1 and not made[0].columns:
        clause = collate(False, made[0].type)
        return Ex(f"COUNT(DISTINCT {made[0].sql}{clause})", kind, aggregate=True)
    parts = made[0].columns or tuple(made)
    keys = ", ".join(
        f"mysql_key({p.sql}, '{p.type.collation}')" if p.type.kind == "string" else p.sql
        for p in parts
    )
    return Ex(f"COUNT(DISTINCT mysql_tuple({keys}))", kind, aggregate=True)


def _total(name: str, word: str, number: Ex) -> str:
    sql = f"{name}({word}{number.sql})"
    if name == "SUM" and number.type.kind == "decimal":
        return f"ROUND({sql}, {number.type.scale})"
    return sql


def _total_type(name: str, kind: Type) -> Type:
    if kind.kind in ("int", "year", "decimal", "null"):
        scale = kind.scale or 0
        if name == "SUM":
            return decimal(digits(kind) + 22 + scale, scale)
        return decimal(digits(kind) + scale + SCALE_STEP, scale + SCALE_STEP)
    if kind.scale is None:
        return DOUBLE
    return replace(DOUBLE, scale=min(30, kind.scale + SCALE_STEP * (name == "AVG")))


def group_concat(node: exp.GroupConcat, scope: Scope, make: Maker) -> Ex:
    """GROUP_CONCAT with its DISTINCT, ORDER BY and SEPARATOR; cut at 1024 bytes as in MySQL."""
    inner = node.this
    order = inner if isinstance(inner, exp.Order) else None
    inner = inner.this if order is not None else inner
    distinct = isinstance(inner, exp.Distinct)
    parts = list(inner.expressions) if distinct else [inner]
    if len(parts) == 1 and isinstance(parts[0], exp.Concat):
        parts = list(parts[0].expressions)
    made = [as_text(m) for m in _arguments(parts, scope, make)]
    separator = node.args.get("separator")
    glue = separator.this if separator is not None else ","
    keys, ways = [], ""
    for item in order.expressions if order is not None else ():
        (key,) = _arguments([item.this], scope, make)
        fold = key.type.kind == "string" and key.type.collation != "bin"
        keys.append(f"mysql_key({key.sql}, '{key.type.collation}')" if fold else key.sql)
        ways += "d" if item.args.get("desc") else "a"
    kind = joined(*(m.type for m in made))
    value = " || ".join(m.sql for m in made)
    fixed = f"{quoted(glue)}, {int(distinct)}, '{ways}', '{kind.collation}'"
    sql = f"mysql_group_concat({value}, {fixed}{''.join(', ' + k for k in keys)})"
    return Ex(sql, replace(kind, plain=0, precision=0), aggregate=True)
