"""The text of an expression as MySQL's errors quote it."""

from __future__ import annotations

from sqlglot import exp

from intercode_sql.dialect.parser import FUNCTION_MARK, mysql_text
from intercode_sql.embedded.catalog.values import is_number
from intercode_sql.embedded.compile.scope import Scope

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "DIV", exp.Mod: "%",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "<=>", exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "<<", exp.BitwiseRightShift: ">>", exp.Like: "like",
    exp.RegexpLike: "regexp", exp.Xor: "xor",
}  # fmt: skip


def item_text(node: exp.Expr, scope: Scope) -> str:
    """Return the text of an expression in an error."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Column):
        return _column_text(node, scope)
    if type(node) in (exp.Add, exp.Sub) and isinstance(node.expression, exp.Interval):
        sign, unit = _OPERATORS[type(node)], node.expression.args["unit"].name.lower()
        size = item_text(node.expression.this, scope)  # the parser quotes numbers
        size = size.strip("'") if is_number(size.strip("'")) else size
        return f"({item_text(node.this, scope)} {sign} interval {size} {unit})"
    if type(node) in _OPERATORS:
        left, right = item_text(node.this, scope), item_text(node.expression, scope)
        return f"({left} {_OPERATORS[type(node)]} {right})"
    if isinstance(node, exp.Between):
        low, high = (item_text(node.args[name], scope) for name in ("low", "high"))
        return f"({item_text(node.this, scope)} between {low} and {high})"
    if isinstance(node, exp.In) and node.expressions:
        values = ",".join(item_text(value, scope) for value in node.expressions)
        return f"({item_text(node.this, scope)} in ({values}))"
    if isinstance(node, exp.Not) and isinstance(node.this, exp.Is):
        return item_text(node.this, scope).replace(" is ", " is not ", 1)
    if isinstance(node, exp.Extract):
        return f"extract({node.this.name.lower()} from {item_text(node.expression, scope)})"
    if isinstance(node, exp.Is):
        return f"({item_text(node.this, scope)} is {node.expression.sql().lower()})"
    if isinstance(node, exp.Collate):
        return f"({item_text(node.this, scope)} collate {node.expression.name})"
    if isinstance(node, exp.HexString):
        return f"0x{node.this.lower()}"
    if isinstance(node, exp.BitString):
        return f"0x{int(node.this or '0', 2):0{-(-len(node.this) // 8) * 2}x}"
    if isinstance(node, exp.Anonymous):
        return _call_text(str(node.this).removeprefix(FUNCTION_MARK).lower(), node, scope)
    if isinstance(node, exp.Cast):
        return _cast_text(node, scope)
    if isinstance(node, exp.Case):
        return _case_text(node, scope)
    if isinstance(node, exp.Neg) and not isinstance(node.this, exp.Literal):
        return f"-({item_text(node.this, scope)})"
    return mysql_text(node)


def _call_text(name: str, node: exp.Anonymous, scope: Scope) -> str:
    word, _, literal = name.partition("_")
    if literal == "literal":  # DATE '2020-06-15'
        return f"{word.upper()}'{node.expressions[0].name}'"
    name = "pow" if name == "power" else name
    parts = (
        item_text(part, scope)
        for argument in node.expressions
        for part in (argument.expressions if isinstance(argument, exp.Distinct) else (argument,))
    )
    if name == "datediff":
        return f"({' - '.join(f'to_days({part})' for part in parts)})"
    if name == "round" and len(node.expressions) == 1:
        return f"round({','.join(parts)},0)"
    if name == "count" and isinstance(node.expressions[0], exp.Star):
        return "count(0)"
    distinct = (
        "distinct "
        * (name not in ("min", "max"))
        * any(isinstance(argument, exp.Distinct) for argument in node.expressions)
    )
    return f"{name}({distinct}{','.join(parts)})"


def _cast_text(node: exp.Cast, scope: Scope) -> str:
    kind = mysql_text(node.args["to"])
    if kind.upper() == "TIMESTAMP":  # TIMESTAMP '2020-06-15 12:30:45'
        return f"TIMESTAMP'{node.this.name}'"
    kind = {"bigint": "signed", "bigint unsigned": "unsigned"}.get(kind.lower(), kind.lower())
    if kind.startswith(("char", "binary")):
        charset = "binary" if kind.startswith("binary") else "utf8mb4"
        kind = f"{kind.replace('binary', 'char')} charset {charset}"
    return f"cast({item_text(node.this, scope)} as {kind})"


def _case_text(node: exp.Case, scope: Scope) -> str:
    words = ["case"]
    if node.this is not None:
        words.append(item_text(node.this, scope))
    for branch in node.args["ifs"]:
        words += ["when", item_text(branch.this, scope)]
        words += ["then", item_text(branch.args["true"], scope)]
    if node.args.get("default") is not None:
        words += ["else", item_text(node.args["default"], scope)]
    return f"({' '.join(words)} end)"


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
