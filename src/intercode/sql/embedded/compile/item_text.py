"""The text of an expression as MySQL's errors quote it."""

from __future__ import annotations

from sqlglot import exp

from intercode.sql.dialect.parser import FUNCTION_MARK, mysql_text
from intercode.sql.embedded.compile.scope import Scope

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "DIV", exp.Mod: "%",
}  # fmt: skip


def item_text(node: exp.Expr, scope: Scope) -> str:
    """Return the text of an expression in an error."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Column):
        return _column_text(node, scope)
    if type(node) in _OPERATORS:
        left, right = item_text(node.this, scope), item_text(node.expression, scope)
        return f"({left} {_OPERATORS[type(node)]} {right})"
    if isinstance(node, exp.Anonymous):
        name = str(node.this).removeprefix(FUNCTION_MARK).lower()
        return f"{name}({','.join(item_text(a, scope) for a in node.expressions)})"
    if isinstance(node, exp.Neg) and not isinstance(node.this, exp.Literal):
        return f"-({item_text(node.this, scope)})"
    return mysql_text(node)


def _column_text(node: exp.Column, scope: Scope) -> str:
    at: Scope | None = scope
    while at is not None:
        for source in at.sources:
            if node.table.lower() not in ("", source.name.lower()):
                continue
            if any(name.lower() == node.name.lower() for name, _, _ in source.columns):
                parts = (source.database, source.name, node.name)
                return ".".join(f"`{part}`" for part in parts if part)
        at = at.parent
    return f"`{node.name}`"
