"""Functions in a form of their own: TRIM, SUBSTRING ... FROM, EXTRACT, CURRENT_DATE, ..."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from intercode.sql.dialect.errors import unsupported
from intercode.sql.embedded.catalog.types import INT, STRING
from intercode.sql.embedded.compile.arithmetic import ExpressionCompiler
from intercode.sql.embedded.compile.conversions import as_number, as_text, text_constant
from intercode.sql.embedded.compile.scope import Expression, Scope
from intercode.sql.embedded.compile.special_functions import (
    current_time,
    floor_ceiling,
    session_function,
)


def _trim(node: exp.Trim, scope: Scope, make: ExpressionCompiler) -> Expression:
    this = as_text(make(node.this, scope))
    what = node.expression
    chars = as_text(make(what, scope)) if what is not None else text_constant(" ")
    side = (node.args.get("position") or "BOTH").upper()
    kind = replace(this.type, plain=min(this.type.plain, 2 if what is None else 0))
    return Expression(f"mysql_trim({this.sql}, {chars.sql}, '{side}')", kind.as_nullable())


def _substring(node: exp.Substring, scope: Scope, make: ExpressionCompiler) -> Expression:
    parts = [as_text(make(node.this, scope))]
    for name in ("start", "length"):
        if node.args.get(name) is not None:
            parts.append(as_number(make(node.args[name], scope)))
    kind = replace(parts[0].type, plain=0, precision=0)
    return Expression(f"mysql_substring({', '.join(p.sql for p in parts)})", kind.as_nullable())


def _position(node: exp.StrPosition, scope: Scope, make: ExpressionCompiler) -> Expression:
    a, b = as_text(make(node.args["substr"], scope)), as_text(make(node.this, scope))
    return Expression(f"mysql_locate({a.sql}, {b.sql})", INT)


def _extract(node: exp.Extract, scope: Scope, make: ExpressionCompiler) -> Expression:
    unit = node.this.name.upper()
    this = as_text(make(node.expression, scope))
    return Expression(f"mysql_extract('{unit}', {this.sql})", INT)


def _current_time(node: exp.Func, scope: Scope, make: ExpressionCompiler) -> Expression:
    names: dict[Any, str] = {
        exp.CurrentDate: "CURDATE", exp.CurrentTime: "CURTIME", exp.UtcDate: "CURDATE",
        exp.UtcTime: "CURTIME",
    }  # fmt: skip
    return current_time(names.get(type(node), "NOW"), [], scope, make)


def _user(node: exp.CurrentUser, scope: Scope, make: ExpressionCompiler) -> Expression:
    return session_function("USER", [], scope, make)


def _chr(node: exp.Chr, scope: Scope, make: ExpressionCompiler) -> Expression:
    parts = [as_number(make(e, scope)).sql for e in node.expressions]
    return Expression(
        f"mysql_char({', '.join(parts)})", replace(STRING, collation="bin", strong=True)
    )


def _floor(node: exp.Func, scope: Scope, make: ExpressionCompiler) -> Expression:
    name = "FLOOR" if isinstance(node, exp.Floor) else "CEIL"
    return floor_ceiling(name, [node.this], scope, make)


def _json_operator(node: exp.JSONExtract, scope: Scope, make: ExpressionCompiler) -> Expression:
    raise unsupported("the operators -> and ->> (JSON_EXTRACT is there)")


FORMS: dict[type[exp.Expr], Callable[[Any, Scope, ExpressionCompiler], Expression]] = {
    exp.Trim: _trim, exp.Substring: _substring, exp.StrPosition: _position,
    exp.Extract: _extract, exp.CurrentDate: _current_time, exp.CurrentTime: _current_time,
    exp.CurrentTimestamp: _current_time, exp.UtcDate: _current_time, exp.UtcTime: _current_time,
    exp.UtcTimestamp: _current_time, exp.Localtime: _current_time, exp.Localtimestamp: _current_time,
    exp.CurrentUser: _user, exp.Chr: _chr, exp.Floor: _floor, exp.Ceil: _floor,
    exp.JSONExtract: _json_operator, exp.JSONExtractScalar: _json_operator,
}  # fmt: skip
