"""LIKE and REGEXP."""

from __future__ import annotations

from sqlglot import exp

from intercode.sql.embedded.catalog.collations import collate_clause
from intercode.sql.embedded.catalog.types import BOOL
from intercode.sql.embedded.compile.arithmetic import ExpressionCompiler
from intercode.sql.embedded.compile.conversions import as_text, quote_text
from intercode.sql.embedded.compile.scope import Expression, Scope


def compile_like(node: exp.Like | exp.Escape, scope: Scope, make: ExpressionCompiler) -> Expression:
    """LIKE: SQLite's own where its idea of letters is enough."""
    escape = "\\"
    like = node
    if isinstance(node, exp.Escape):
        like, escape = node.this, node.expression.this
    left, right = as_text(make(like.this, scope)), as_text(make(like.expression, scope))
    kinds = (left.type, right.type)
    clause = collate_clause(False, *kinds)
    negate = "NOT " * bool(like.args.get("negate"))
    if (
        clause == " COLLATE NOCASE"
        and len(escape) == 1
        and not (right.literal or "").endswith(escape)
    ):
        return Expression(
            f"({left.sql} {negate}LIKE {right.sql} ESCAPE {quote_text(escape)})", BOOL
        )
    collation = "bin" if clause.endswith("BINARY") else clause.rpartition("_")[2] or "uca"
    collation = "uca" if collation not in ("bin", "general") else collation
    sql = f"mysql_like({left.sql}, {right.sql}, {quote_text(escape)}, '{collation}')"
    return Expression(f"({negate}{sql})", BOOL)


def compile_regexp(node: exp.RegexpLike, scope: Scope, make: ExpressionCompiler) -> Expression:
    """REGEXP and RLIKE."""
    left, right = as_text(make(node.this, scope)), as_text(make(node.expression, scope))
    exact = int(collate_clause(False, left.type, right.type).endswith("BINARY"))
    sql = f"mysql_regexp({left.sql}, {right.sql}, {exact})"
    return Expression(f"(NOT {sql})" if node.args.get("negate") else sql, BOOL)
