"""Expressions of MySQL's in SQLite's words, each with its type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from intercode.sql.dialect.errors import fault, unable
from intercode.sql.dialect.parser import written
from intercode.sql.embedded.catalog.collations import collate
from intercode.sql.embedded.catalog.definitions import family
from intercode.sql.embedded.catalog.types import BOOL, INT, STRING, merged
from intercode.sql.embedded.compile import calls, patterns, subqueries, windows
from intercode.sql.embedded.compile.arithmetic import binary, concatenated, negated
from intercode.sql.embedded.compile.casts import cast
from intercode.sql.embedded.compile.comparisons import aligned, compared
from intercode.sql.embedded.compile.conversions import (
    NOTHING,
    as_number,
    as_text,
    constant,
    converted,
    number,
    text,
)
from intercode.sql.embedded.compile.scope import Ex, Scope

Handler = Callable[[Any, Scope], Ex]
_COMPARISONS = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "IS",
}  # fmt: skip
_FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def expression(node: exp.Expr, scope: Scope) -> Ex:
    """One expression. Raises StatementError as MySQL would, or for what cannot be done."""
    handler = _HANDLERS.get(type(node))
    if handler is not None:
        return handler(node, scope)
    if isinstance(node, exp.Binary) and type(node) in _COMPARISONS:
        return _comparison(node, scope)
    if isinstance(node, exp.Binary) and (found := binary(node, scope, expression)) is not None:
        return found
    if isinstance(node, exp.Func):
        return calls.special(node, scope, expression)
    raise unable(f"the expression {written(node)[:80]}")


def condition(node: exp.Expr, scope: Scope) -> str:
    """An expression that is asked for its truth."""
    made = scalar(node, scope)
    return truth(made)


def truth(ex: Ex) -> str:
    return as_number(ex).sql if ex.type.text or ex.type.moment else ex.sql


def scalar(node: exp.Expr, scope: Scope) -> Ex:
    """An expression that must be one value. Raises StatementError 1241 for a row."""
    made = expression(node, scope)
    if made.columns:
        raise fault(1241, 1)
    return made


def _comparison(node: exp.Binary, scope: Scope) -> Ex:
    op = next(o for k, o in _COMPARISONS.items() if isinstance(node, k))
    for one, other, sign in ((node.this, node.expression, op), (node.expression, node.this, op)):
        if isinstance(one, (exp.All, exp.Any)):
            way = sign if one is node.expression else _FLIPPED[sign]
            return subqueries.quantified(way, other, one, scope, expression)
    return compared(op, expression(node.this, scope), expression(node.expression, scope))


def _logical(node: exp.Connector, scope: Scope) -> Ex:
    """AND and OR of any length, without recursion along the chain."""
    kind, word = type(node), "AND" if isinstance(node, exp.And) else "OR"
    parts: list[exp.Expr] = []
    todo: list[exp.Expr] = [node]
    while todo:
        one = todo.pop()
        if type(one) is kind:
            todo += [one.expression, one.this]
        else:
            parts.append(one)
    made = [condition(p, scope) for p in parts]
    while len(made) > 1:  # a tree of little depth: SQLite bounds the depth of an expression
        made = [f"({f' {word} '.join(made[i : i + 2])})" for i in range(0, len(made), 2)]
    return Ex(made[0], BOOL)


def _xor(node: exp.Xor, scope: Scope) -> Ex:
    a, b = condition(node.this, scope), condition(node.expression, scope)
    return Ex(f"((NOT {a}) <> (NOT {b}))", BOOL)


def _not(node: exp.Not, scope: Scope) -> Ex:
    return Ex(f"(NOT {condition(node.this, scope)})", BOOL)


def _paren(node: exp.Paren, scope: Scope) -> Ex:
    return expression(node.this, scope)


def _tuple(node: exp.Tuple, scope: Scope) -> Ex:
    parts = tuple(scalar(e, scope) for e in node.expressions)
    if len(parts) == 1:
        return parts[0]
    return Ex(f"({', '.join(p.sql for p in parts)})", INT, columns=parts)


def _literal(node: exp.Literal, scope: Scope) -> Ex:
    return text(node.this) if node.is_string else number(node.this)


def _column(node: exp.Column, scope: Scope) -> Ex:
    if isinstance(node.this, exp.Star):
        raise unable("a star inside an expression")
    found = scope.column(node)
    if found.aggregate and scope.inside_aggregate:
        raise fault(1111)
    return found


def _is(node: exp.Is, scope: Scope) -> Ex:
    left = scalar(node.this, scope)
    right = node.expression
    kind = replace(BOOL, nullable=False)
    if isinstance(right, exp.Null):
        return Ex(f"({left.sql} IS NULL)", kind)
    if isinstance(right, exp.Not):
        inner = _is(exp.Is(this=node.this, expression=right.this), scope)
        return Ex(f"(NOT {inner.sql})", kind)
    if isinstance(right, exp.Boolean):
        value = truth(left)
        sql = f"IFNULL({value} <> 0, 0)" if right.this else f"IFNULL({value} = 0, 0)"
        return Ex(sql, kind)
    return Ex(f"({left.sql} IS NULL)", kind)


def _between(node: exp.Between, scope: Scope) -> Ex:
    this = scalar(node.this, scope)
    low, high = scalar(node.args["low"], scope), scalar(node.args["high"], scope)
    a, b = compared(">=", this, low), compared("<=", this, high)
    return Ex(f"({a.sql} AND {b.sql})", BOOL)


def _in(node: exp.In, scope: Scope) -> Ex:
    left = expression(node.this, scope)
    query = node.args.get("query")
    if query is not None:
        return subqueries.member(left, query, scope)
    parts = [expression(e, scope) for e in node.expressions]
    if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Query):
        return subqueries.member(left, node.expressions[0], scope)
    kinds = {p.type.kind for p in parts} - {"null"}
    if left.columns or len(kinds) > 1 or left.type.moment or any(p.type.moment for p in parts):
        return Ex(f"({' OR '.join(compared('=', left, p).sql for p in parts)})", BOOL)
    pairs = [aligned(left, p, False) for p in parts]
    worst = collate(False, left.type, *(p.type for p in parts))
    known = worst if any(c for _, _, c in pairs) else ""
    compared_as = next((a for a, b, _ in pairs if b.type.kind != "null"), left)
    return Ex(f"({compared_as.sql}{known} IN ({', '.join(p.sql for _, p, _ in pairs)}))", BOOL)


def _like(node: exp.Like | exp.Escape, scope: Scope) -> Ex:
    return patterns.like(node, scope, scalar)


def _regexp(node: exp.RegexpLike, scope: Scope) -> Ex:
    return patterns.regexp(node, scope, scalar)


def _case(node: exp.Case, scope: Scope) -> Ex:
    base = scalar(node.this, scope) if node.this is not None else None
    arms: list[tuple[str, Ex]] = []
    for branch in node.args["ifs"]:
        if base is None:
            test = condition(branch.this, scope)
        else:
            test = compared("=", base, scalar(branch.this, scope)).sql
        arms.append((test, scalar(branch.args["true"], scope)))
    default = node.args.get("default")
    last = scalar(default, scope) if default is not None else NOTHING
    kind = merged(*(a.type for _, a in arms), last.type)
    shown = " ".join(f"WHEN {t} THEN {converted(a, kind).sql}" for t, a in arms)
    sql = f"CASE {shown} ELSE {converted(last, kind).sql} END"
    return Ex(f"({sql})", kind, aggregate=any(a.aggregate for _, a in arms))


def _negative(node: exp.Neg, scope: Scope) -> Ex:
    return negated(scalar(node.this, scope))


def _collated(node: exp.Collate, scope: Scope) -> Ex:
    made = as_text(scalar(node.this, scope))
    name = node.expression.name.lower()
    order = family(name)
    plain = 0 if order == "bin" else made.type.plain
    kind = replace(made.type, collation=order, strong=True, plain=plain)
    return Ex(made.sql, kind)


def _concatenation(node: exp.Concat, scope: Scope) -> Ex:
    """String literals that stand beside each other."""
    parts = [scalar(e, scope) for e in node.expressions]
    if all(isinstance(p.literal, str) for p in parts):
        return text("".join(p.literal for p in parts))
    return concatenated(parts)


def _variable(node: exp.Parameter, scope: Scope) -> Ex:
    scope.unit.volatile = True
    return constant(scope.unit.variables.get(node.this.name.lower()))


def _setting(node: exp.SessionParameter, scope: Scope) -> Ex:
    scope.unit.volatile = True
    name = node.this.name.lower()
    if name not in scope.unit.settings:
        raise fault(1193, name)
    return constant(scope.unit.settings[name])


def _bytes(node: exp.HexString, scope: Scope) -> Ex:
    digits = node.this
    digits = digits if len(digits) % 2 == 0 else "0" + digits
    return Ex(f"CAST(X'{digits}' AS TEXT)", replace(STRING, collation="bin", strong=True))


def _boolean(node: exp.Boolean, scope: Scope) -> Ex:
    return Ex(str(int(node.this)), replace(BOOL, nullable=False), literal=int(node.this))


def _called(node: exp.Anonymous, scope: Scope) -> Ex:
    return calls.called(node, scope, expression)


def _window(node: exp.Window, scope: Scope) -> Ex:
    return windows.window(node, scope, expression)


def _subquery(node: exp.Subquery | exp.Select | exp.Union, scope: Scope) -> Ex:
    return subqueries.scalar(node, scope)


def _exists(node: exp.Exists, scope: Scope) -> Ex:
    return subqueries.exists(node, scope)


def _text_of(node: exp.Introducer | exp.National, scope: Scope) -> Ex:
    inner = node.expression if isinstance(node, exp.Introducer) else node.this
    return text(inner if isinstance(inner, str) else inner.this)


def _cast(node: exp.Cast, scope: Scope) -> Ex:
    return cast(scalar(node.this, scope), node)


def _binary_string(node: exp.BitString, scope: Scope) -> Ex:
    return number(str(int(node.this, 2)))


_HANDLERS: dict[type[exp.Expr], Handler] = {
    exp.And: _logical, exp.Or: _logical, exp.Xor: _xor, exp.Not: _not, exp.Paren: _paren,
    exp.Tuple: _tuple, exp.Literal: _literal, exp.Column: _column, exp.Is: _is,
    exp.Between: _between, exp.In: _in, exp.Like: _like, exp.Escape: _like,
    exp.RegexpLike: _regexp, exp.Case: _case, exp.Neg: _negative, exp.Collate: _collated,
    exp.Concat: _concatenation, exp.Parameter: _variable, exp.SessionParameter: _setting,
    exp.HexString: _bytes, exp.BitString: _binary_string, exp.Boolean: _boolean,
    exp.Anonymous: _called, exp.Window: _window, exp.Subquery: _subquery, exp.Select: _subquery,
    exp.Union: _subquery, exp.Except: _subquery, exp.Intersect: _subquery, exp.Exists: _exists,
    exp.Introducer: _text_of, exp.National: _text_of, exp.Cast: _cast,
    exp.Null: lambda node, scope: NOTHING,
}  # fmt: skip
