"""Compiles expressions to SQLite's SQL, each with its type in MySQL."""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot import exp

from intercode_sql.dialect.errors import mysql_error, unsupported
from intercode_sql.embedded.catalog.collations import collate_clause
from intercode_sql.embedded.catalog.definition_parser import collation_family
from intercode_sql.embedded.catalog.types import BOOL, BYTES, INT, merge_types
from intercode_sql.embedded.compile import (  # noqa: F401  # registers their compilers
    aggregates,
    calls,
    subqueries,
)
from intercode_sql.embedded.compile.conversions import (
    CAN_FAIL,
    MOMENTS_OF_DAYS,
    NULL_EXPRESSION,
    as_column,
    as_text,
    bytes_constant,
    chosen_sql,
    compile_cast,
    compile_condition,
    number_constant,
    on_this_day,
    quote_text,
    text_constant,
    time_of_this_day,
    truth_sql,
    value_constant,
)
from intercode_sql.embedded.compile.model import (
    ASSIGNS,
    Expression,
    Scope,
    compile_expression,
    compile_scalar,
    compiles,
)
from intercode_sql.embedded.compile.operators import (
    align_three,
    align_types,
    compare,
    concatenate,
    in_one_charset,
    year_constant,
    years_in_list,
)

_VOLATILE = re.compile(r"mysql_(?:rand|sleep)\(")
_MAX_REPEATED = 4000  # characters of conditions that are written twice
_MAX_TWICE = 100_000  # characters of a value that BETWEEN compares twice
_COMPARISONS = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS",
}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@compiles(*_COMPARISONS)
def _comparison(node: exp.Binary, scope: Scope) -> Expression:
    op = next(o for k, o in _COMPARISONS.items() if isinstance(node, k))
    for one, other, sign in ((node.this, node.expression, op), (node.expression, node.this, op)):
        if isinstance(one, (exp.All, exp.Any)):
            way = sign if one is node.expression else _MIRRORED[sign]
            return subqueries.quantified_comparison(way, other, one, scope)
    sides = [compile_expression(node.this, scope), compile_expression(node.expression, scope)]
    left, right = on_this_day(sides, scope)
    return compare(
        op, year_constant(left, node.this, right), year_constant(right, node.expression, left)
    )


@compiles(exp.And, exp.Or)
def _logical(node: exp.Connector, scope: Scope) -> Expression:
    """Compile AND and OR of any length, without recursion along the chain."""
    kind, word = type(node), "AND" if isinstance(node, exp.And) else "OR"
    parts: list[exp.Expr] = []
    todo: list[exp.Expr] = [node]
    while todo:
        one = todo.pop()
        if type(one) is kind:
            todo += [one.expression, one.this]
        else:
            parts.append(one)
    conditions = [compile_condition(p, scope) for p in parts]
    if word == "AND" and "0" in conditions:
        return _boolean(exp.false(), scope)
    behind = " ".join(conditions[1:])
    volatile = _VOLATILE.search(behind) or _VOLATILE.search(conditions[0])
    if CAN_FAIL.search(behind) and not volatile and len(behind) < _MAX_REPEATED:
        return Expression(join_in_order(conditions, word), BOOL)
    return Expression(_join(conditions, word), BOOL)


def _join(conditions: list[str], word: str) -> str:
    """Join conditions as a balanced tree, because SQLite limits the depth of an expression."""
    while len(conditions) > 1:
        conditions = [
            f"({f' {word} '.join(conditions[i : i + 2])})" for i in range(0, len(conditions), 2)
        ]
    return conditions[0]


def join_in_order(conditions: list[str], word: str) -> str:
    """Join conditions so that one that can fail is not computed behind a decision. The others stay
    operands of ``word``, for which SQLite can use an index."""
    negate, decided = ("NOT ", 0) if word == "AND" else ("", 1)
    groups = [[conditions[0]]]
    for condition in conditions[1:]:
        if CAN_FAIL.search(condition):
            groups.append([condition])
        else:
            groups[-1].append(condition)
    joined = _join(groups.pop(), word)
    while groups:
        before = _join(groups.pop(), word)
        joined = f"({before} {word} CASE WHEN {negate}{before} THEN {decided} ELSE {joined} END)"
    return joined


@compiles(exp.Xor)
def _xor(node: exp.Xor, scope: Scope) -> Expression:
    a, b = compile_condition(node.this, scope), compile_condition(node.expression, scope)
    return Expression(f"((NOT {a}) <> (NOT {b}))", BOOL)


@compiles(exp.Not)
def _not(node: exp.Not, scope: Scope) -> Expression:
    return Expression(f"(NOT {compile_condition(node.this, scope)})", BOOL)


@compiles(exp.Paren)
def _parenthesized(node: exp.Paren, scope: Scope) -> Expression:
    return compile_expression(node.this, scope)


@compiles(exp.Tuple)
def _tuple(node: exp.Tuple, scope: Scope) -> Expression:
    parts = tuple(compile_scalar(e, scope) for e in node.expressions)
    return Expression(f"({', '.join(p.sql for p in parts)})", INT, columns=parts)


@compiles(exp.Literal)
def _literal(node: exp.Literal, scope: Scope) -> Expression:
    return text_constant(node.this) if node.is_string else number_constant(node.this)


@compiles(exp.Column)
def _column(node: exp.Column, scope: Scope) -> Expression:
    found = scope.column(node)
    if found.aggregate and scope.inside_aggregate:
        raise mysql_error(1111)
    return found


@compiles(exp.Is)
def _is(node: exp.Is, scope: Scope) -> Expression:
    left = compile_scalar(node.this, scope)
    right = node.expression
    kind = replace(BOOL, nullable=False)
    if isinstance(right, exp.Boolean):
        value = truth_sql(left)
        sql = f"IFNULL({value} <> 0, 0)" if right.this else f"IFNULL({value} = 0, 0)"
        return Expression(sql, kind)
    return Expression(f"({left.sql} IS NULL)", kind)


@compiles(exp.Between)
def _between(node: exp.Between, scope: Scope) -> Expression:
    nodes = (node.this, node.args["low"], node.args["high"])
    parts = [compile_scalar(p, scope) for p in nodes]
    if parts[0].type.moment:
        parts = on_this_day(parts, scope)
    this, low, high = parts
    parts = [this, year_constant(low, nodes[1], this), year_constant(high, nodes[2], this)]
    this, low, high = align_three(parts)
    if len(this.sql) > _MAX_TWICE:
        raise unsupported("BETWEEN of so large an expression")
    a, b = compare(">=", this, low), compare("<=", this, high)
    return Expression(f"({a.sql} AND {b.sql})", BOOL)


@compiles(exp.In)
def _in(node: exp.In, scope: Scope) -> Expression:
    left = compile_expression(node.this, scope)
    document = left
    left = as_text(left) if left.type.kind == "json" else left
    query = node.args.get("query")
    if query is not None:
        return subqueries.in_subquery(left, node.this, query, scope)
    parts = [compile_expression(e, scope) for e in node.expressions]
    parts = years_in_list(parts, node.expressions, left)
    if left.type.moment:
        left, *parts = on_this_day([left, *parts], scope)
    if not left.columns:
        left, *parts = in_one_charset([left, *parts])
    kinds = {p.type.kind for p in parts} - {"null"}
    if document.type.kind == "json":
        tests = (compare("=", document, p).sql for p in parts)
        return Expression(f"({' OR '.join(tests)})", BOOL)
    if left.columns or len(kinds) > 1 or left.type.moment or any(p.type.moment for p in parts):
        return Expression(f"({' OR '.join(compare('=', left, p).sql for p in parts)})", BOOL)
    pairs = [align_types(left, p, False) for p in parts]
    clause = collate_clause(False, left.type, *(p.type for p in parts))
    used_clause = clause if any(c for _, _, c in pairs) else ""
    compared_as = next((a for a, b, _ in pairs if b.type.kind != "null"), left)
    return Expression(
        f"({compared_as.sql}{used_clause} IN ({', '.join(p.sql for _, p, _ in pairs)}))", BOOL
    )


@compiles(exp.Case)
def _case(node: exp.Case, scope: Scope) -> Expression:
    branches = node.args["ifs"]
    if node.this is None:
        tests = [compile_condition(branch.this, scope) for branch in branches]
    else:
        sides = [compile_scalar(part, scope) for part in (node.this, *(b.this for b in branches))]
        base, *others = in_one_charset(sides)
        tests = [compare("=", *on_this_day([base, other], scope)).sql for other in others]
    found = [compile_scalar(branch.args["true"], scope) for branch in branches]
    arms = list(zip(tests, found, strict=True))
    default = node.args.get("default")
    last = compile_scalar(default, scope) if default is not None else NULL_EXPRESSION
    *values, last = on_this_day([*(a for _, a in arms), last], scope)
    kind = merge_types(*(v.type for v in values), last.type)
    listed = " ".join(
        f"WHEN {test} THEN {chosen_sql(value, kind)}"
        for (test, _), value in zip(arms, values, strict=True)
    )
    sql = f"CASE {listed} ELSE {chosen_sql(last, kind)} END"
    return Expression(f"({sql})", kind, aggregate=any(a.aggregate for _, a in arms))


@compiles(exp.Collate)
def _collate(node: exp.Collate, scope: Scope) -> Expression:
    text = as_text(compile_scalar(node.this, scope))
    name = node.expression.name.lower()
    order = collation_family(name)
    if name != "binary" and "_" not in name:
        raise mysql_error(1273, name)
    plain = 0 if order == "bin" else text.type.plain
    given = node.this.name.lower() if isinstance(node.this, exp.Introducer) else ""
    short = given in ("_utf8", "_utf8mb3")
    charset = "utf8mb3" if short else text.type.charset or "utf8mb4"
    if text.type.binary or not name.startswith(("utf8_", "utf8mb3_") if short else charset):
        raise mysql_error(1253, name, "binary" if text.type.binary else charset)
    kind = replace(text.type, collation=order, strong=True, explicit=True, plain=plain)
    return Expression(text.sql, kind)


@compiles(exp.Concat)
def _concatenation(node: exp.Concat, scope: Scope) -> Expression:
    """Compile adjacent string literals."""
    parts = [compile_scalar(e, scope) for e in node.expressions]
    if all(isinstance(p.literal, str) for p in parts):
        return text_constant("".join(p.literal for p in parts))
    return concatenate(parts)


@compiles(exp.Parameter)
def _variable(node: exp.Parameter, scope: Scope) -> Expression:
    """Compile a user variable. One that the statement sets has the type of its value before."""
    context, name = scope.context, node.this.name.lower()
    context.volatile = True
    constant = value_constant(context.variables.get(name))
    if name not in context.assigned:
        return constant
    if name not in {*context.variables, *(known for known, _ in context.assignments)}:
        raise unsupported(f"the variable @{name}, which is read before it is set")
    kind = constant.type if constant.type.kind != "null" else text_constant("").type
    if kind.text and not kind.binary:
        sql = f"CAST(mysql_variable({quote_text(name)}, 0) AS TEXT)"
    else:
        sql = f"mysql_variable({quote_text(name)}, {int(kind.number)})"
    return Expression(sql, kind.as_nullable())


@compiles(exp.PropertyEQ)
def _assignment(node: exp.PropertyEQ, scope: Scope) -> Expression:
    """Compile ``@name := value``."""
    context, name = scope.context, node.this.this.name.lower()
    if scope.clause != "select" or name not in context.assigned:
        raise unsupported("an assignment to a variable here")
    value = as_column(compile_scalar(node.expression, scope))
    value = as_text(value) if value.type.moment or value.type.ranked else value
    kind = value.type.as_stored()
    digits = (kind.scale or 0) if kind.kind == "decimal" else -1
    sql = f"{ASSIGNS}{quote_text(name)}, {value.sql}, {digits}, {len(context.assignments)})"
    context.assignments.append((name, kind))
    return Expression(sql, kind, aggregate=value.aggregate)


@compiles(exp.SessionParameter)
def _setting(node: exp.SessionParameter, scope: Scope) -> Expression:
    scope.context.volatile = True
    name = node.this.name.lower()
    if name in ("warning_count", "error_count"):
        raise unsupported(f"@@{name}: SHOW COUNT(*) WARNINGS and SHOW COUNT(*) ERRORS")
    if name not in scope.context.settings:
        raise mysql_error(1193, name)
    return value_constant(scope.context.settings[name])


@compiles(exp.HexString)
def _hex_literal(node: exp.HexString, scope: Scope) -> Expression:
    digits = node.this
    digits = digits if len(digits) % 2 == 0 else "0" + digits
    kind = replace(BYTES, nullable=False, precision=len(digits) // 2)
    return Expression(f"X'{digits}'", kind, literal=bytes.fromhex(digits))


@compiles(exp.Boolean)
def _boolean(node: exp.Boolean, scope: Scope) -> Expression:
    return Expression(str(int(node.this)), replace(BOOL, nullable=False), literal=int(node.this))


@compiles(exp.Introducer)
def _introduced_string(node: exp.Introducer, scope: Scope) -> Expression:
    inner = node.expression
    charset = node.name.lstrip("_").lower()
    if isinstance(inner, (exp.HexString, exp.BitString)):
        return bytes_constant(compile_expression(inner, scope).literal, charset)
    text = inner if isinstance(inner, str) else str(compile_scalar(inner, scope).literal)
    plain = text.isascii() and charset != "binary"
    return text_constant(text) if plain else bytes_constant(text.encode(), charset)


@compiles(exp.Cast)
def _cast(node: exp.Cast, scope: Scope) -> Expression:
    value = compile_scalar(node.this, scope)
    if node.args["to"].this.name in MOMENTS_OF_DAYS:
        value = time_of_this_day(value, scope)
    return compile_cast(value, node)


@compiles(exp.BitString)
def _bit_literal(node: exp.BitString, scope: Scope) -> Expression:
    size = -(-len(node.this) // 8)
    digits = f"{int(node.this, 2):0{2 * size}x}" if size else ""
    return _hex_literal(exp.HexString(this=digits), scope)


@compiles(exp.Null)
def _null(node: exp.Null, scope: Scope) -> Expression:
    return NULL_EXPRESSION
