"""LIKE and REGEXP."""

from __future__ import annotations

from sqlglot import exp

from intercode.sql.embedded.catalog.collations import collate
from intercode.sql.embedded.catalog.types import BOOL
from intercode.sql.embedded.compile.arithmetic import Maker
from intercode.sql.embedded.compile.conversions import as_text, quoted
from intercode.sql.embedded.compile.scope import Ex, Scope


def like(node: exp.Like | exp.Escape, scope: Scope, make: Maker) -> Ex:
    """LIKE: SQLite's own where its idea of letters is enough."""
    escape = "\\"
    like = node
    if isinstance(node, exp.Escape):
        like, escape = node.this, node.expression.this
    left, right = as_text(make(like.this, scope)), as_text(make(like.expression, scope))
    kinds = (left.type, right.type)
    clause = collate(False, *kinds)
    negate = "NOT " * bool(like.args.get("negate"))
    if (
        clause == " COLLATE NOCASE"
        and len(escape) == 1
        and not (right.literal or "").endswith(escape)
    ):
        return Ex(f"({left.sql} {negate}LIKE {right.sql} ESCAPE {quoted(escape)})", BOOL)
    collation = "bin" if clause.endswith("BINARY") else clause.rpartition("_")[2] or "uca"
    collation = "uca" if collation not in ("bin", "general") else collation
    sql = f"mysql_like({left.sql}, {right.sql}, {quoted(escape)}, '{collation}')"
    return Ex(f"({negate}{sql})", BOOL)


def regexp(node: exp.RegexpLike, scope: Scope, make: Maker) -> Ex:
    """REGEXP and RLIKE."""
    left, right = as_text(make(node.this, scope)), as_text(make(node.expression, scope))
    exact = int(collate(False, left.type, right.type).endswith("BINARY"))
    sql = f"mysql_regexp({left.sql}, {right.sql}, {exact})"
    return Ex(f"(NOT {sql})" if node.args.get("negate") else sql, BOOL)
