"""Functions in a form of their own: TRIM, SUBSTRING ... FROM, EXTRACT, CURRENT_DATE, ..."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from intercode.sql.dialect.errors import unable
from intercode.sql.embedded.catalog.types import INT, STRING
from intercode.sql.embedded.compile.arithmetic import Maker
from intercode.sql.embedded.compile.conversions import as_number, as_text, text
from intercode.sql.embedded.compile.scope import Ex, Scope
from intercode.sql.embedded.compile.special_functions import now, session, whole


def _trim(node: exp.Trim, scope: Scope, make: Maker) -> Ex:
    this = as_text(make(node.this, scope))
    what = node.expression
    chars = as_text(make(what, scope)) if what is not None else text(" ")
    side = (node.args.get("position") or "BOTH").upper()
    kind = replace(this.type, plain=min(this.type.plain, 2 if what is None else 0))
    return Ex(f"mysql_trim({this.sql}, {chars.sql}, '{side}')", kind.maybe())


def _substring(node: exp.Substring, scope: Scope, make: Maker) -> Ex:
    parts = [as_text(make(node.this, scope))]
    for name in ("start", "length"):
        if node.args.get(name) is not None:
            parts.append(as_number(make(node.args[name], scope)))
    kind = replace(parts[0].type, plain=0, precision=0)
    return Ex(f"mysql_substring({', '.join(p.sql for p in parts)})", kind.maybe())


def _position(node: exp.StrPosition, scope: Scope, make: Maker) -> Ex:
    a, b = as_text(make(node.args["substr"], scope)), as_text(make(node.this, scope))
    return Ex(f"mysql_locate({a.sql}, {b.sql})", INT)


def _extract(node: exp.Extract, scope: Scope, make: Maker) -> Ex:
    unit = node.this.name.upper()
    this = as_text(make(node.expression, scope))
    return Ex(f"mysql_extract('{unit}', {this.sql})", INT)


def _current(node: exp.Func, scope: Scope, make: Maker) -> Ex:
    names: dict[Any, str] = {
        exp.CurrentDate: "CURDATE", exp.CurrentTime: "CURTIME", exp.UtcDate: "CURDATE",
        exp.UtcTime: "CURTIME",
    }  # fmt: skip
    return now(names.get(type(node), "NOW"), [], scope, make)


def _user(node: exp.CurrentUser, scope: Scope, make: Maker) -> Ex:
    return session("USER", [], scope, make)


def _chr(node: exp.Chr, scope: Scope, make: Maker) -> Ex:
    parts = [as_number(make(e, scope)).sql for e in node.expressions]
    return Ex(f"mysql_char({', '.join(parts)})", replace(STRING, collation="bin", strong=True))


def _floor(node: exp.Func, scope: Scope, make: Maker) -> Ex:
    name = "FLOOR" if isinstance(node, exp.Floor) else "CEIL"
    return whole(name, [node.this], scope, make)


def _json(node: exp.JSONExtract, scope: Scope, make: Maker) -> Ex:
    raise unable("the operators -> and ->> (JSON_EXTRACT is there)")


FORMS: dict[type[exp.Expr], Callable[[Any, Scope, Maker], Ex]] = {
    exp.Trim: _trim, exp.Substring: _substring, exp.StrPosition: _position,
    exp.Extract: _extract, exp.CurrentDate: _current, exp.CurrentTime: _current,
    exp.CurrentTimestamp: _current, exp.UtcDate: _current, exp.UtcTime: _current,
    exp.UtcTimestamp: _current, exp.Localtime: _current, exp.Localtimestamp: _current,
    exp.CurrentUser: _user, exp.Chr: _chr, exp.Floor: _floor, exp.Ceil: _floor,
    exp.JSONExtract: _json, exp.JSONExtractScalar: _json,
}  # fmt: skip
