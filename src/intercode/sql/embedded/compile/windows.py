"""Window functions: SQLite has them, their types and names are MySQL's."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from intercode.sql.dialect.errors import mysql_error, unsupported
from intercode.sql.dialect.keywords import AGGREGATE_FUNCTIONS, WINDOW_FUNCTIONS
from intercode.sql.dialect.parser import FUNCTION_MARK
from intercode.sql.embedded.catalog.collations import collate_clause
from intercode.sql.embedded.catalog.types import DOUBLE, INT, Type, merge_types
from intercode.sql.embedded.compile.arithmetic import ExpressionCompiler
from intercode.sql.embedded.compile.conversions import convert_to
from intercode.sql.embedded.compile.scope import Expression, Scope

_NATIVE_AGGREGATES = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX"})


def window_call(node: exp.Window, scope: Scope, make: ExpressionCompiler) -> Expression:
    """``function OVER (...)`` or ``OVER name``. Raises StatementError 3593 where none may stand."""
    call = node.this
    name = (
        str(call.this).removeprefix(FUNCTION_MARK).upper()
        if isinstance(call, exp.Anonymous)
        else ""
    )
    if scope.clause in ("where", "on", "group", "having"):
        raise mysql_error(3593, name.lower())
    if name in AGGREGATE_FUNCTIONS:
        if name not in _NATIVE_AGGREGATES or any(
            isinstance(e, exp.Distinct) for e in call.expressions
        ):
            raise unsupported(f"{name} of this kind as a window function")
        before = scope.aggregated
        made = make(call, scope)
        scope.aggregated = before
        sql, kind = made.sql, made.type
        if sql.startswith("ROUND("):
            inner, _, scale = sql[6:-1].rpartition(", ")
            return Expression(
                f"ROUND({inner} OVER ({_over_clause(node, scope, make)}), {scale})", kind
            )
    elif name in WINDOW_FUNCTIONS:
        sql, kind = _window_function(name, call, scope, make)
    else:
        raise unsupported(f"the window function {name or call.sql('mysql')}")
    return Expression(f"{sql} OVER ({_over_clause(node, scope, make)})", kind)


def _window_function(
    name: str, call: exp.Anonymous, scope: Scope, make: ExpressionCompiler
) -> tuple[str, Type]:
    args = [make(e, scope) for e in call.expressions]
    if name in ("PERCENT_RANK", "CUME_DIST"):
        return f"{name}()", DOUBLE
    if name in ("ROW_NUMBER", "RANK", "DENSE_RANK"):
        return f"{name}()", replace(INT, nullable=False)
    if not args:
        raise mysql_error(1582, name)
    kind = args[0].type.as_nullable()
    if name == "NTILE":
        kind = INT
    elif len(args) == 3:
        kind = merge_types(args[0].type, args[2].type)
        args = [convert_to(args[0], kind), args[1], convert_to(args[2], kind)]
    return f"{name}({', '.join(a.sql for a in args)})", kind


def _over_clause(node: exp.Window, scope: Scope, make: ExpressionCompiler) -> str:
    alias = node.args.get("alias")
    if alias is not None and not node.args.get("partition_by") and not node.args.get("order"):
        named = scope.windows.get(alias.name.lower())
        if named is None:
            raise mysql_error(3579, alias.name)
        return _over_clause(named, scope, make) if isinstance(named, exp.Window) else ""
    parts = []
    if node.args.get("partition_by"):
        keys = [make(e, scope) for e in node.args["partition_by"]]
        parts.append(
            "PARTITION BY " + ", ".join(k.sql + collate_clause(False, k.type) for k in keys)
        )
    order = node.args.get("order")
    if order is not None:
        pairs = [(make(o.this, scope), bool(o.args.get("desc"))) for o in order.expressions]
        shown = (k.sql + collate_clause(True, k.type) + " DESC" * down for k, down in pairs)
        parts.append("ORDER BY " + ", ".join(shown))
    spec = node.args.get("spec")
    if spec is not None:
        parts.append(_frame_clause(spec))
    return " ".join(parts)


def _frame_clause(spec: exp.WindowSpec) -> str:
    def bound(value: object, side: object) -> str:
        shown = value.name if isinstance(value, exp.Expr) else str(value or "CURRENT ROW")
        return f"{shown} {side or ''}".strip()

    start = bound(spec.args.get("start"), spec.args.get("start_side"))
    end = spec.args.get("end")
    kind = spec.args.get("kind") or "ROWS"
    if end is None:
        return f"{kind} {start}"
    return f"{kind} BETWEEN {start} AND {bound(end, spec.args.get('end_side'))}"
