"""The text of an expression as MySQL's errors quote it."""

from __future__ import annotations

from sqlglot import exp

from intercode_sql.dialect.parser import FUNCTION_MARK, mysql_text
from intercode_sql.embedded.catalog.values import is_number
from intercode_sql.embedded.compile.model import Scope

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "DIV",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    exp.Like: "like",
    exp.RegexpLike: "regexp",
    exp.Xor: "xor",
}


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
    if isinstance(node, (exp.Like, exp.RegexpLike)) and node.args.get("negate"):
        plain = node.copy()
        plain.set("negate", False)
        return f"(not({item_text(plain, scope)}))"
    if type(node) in _OPERATORS:
        left, right = item_text(node.this, scope), item_text(node.expression, scope)
        return f"({left} {_OPERATORS[type(node)]} {right})"
    if isinstance(node, (exp.And, exp.Or)):
        word = "and" if isinstance(node, exp.And) else "or"
        parts = (_condition_text(part, scope) for part in node.flatten())
        return f"({f' {word} '.join(parts)})"
    if isinstance(node, exp.Not):
        return _negated_text(node.this, scope)
    if isinstance(node, exp.Between):
        return _test_text(node, "between", scope)
    if isinstance(node, exp.In) and node.expressions:
        return _test_text(node, "in", scope)
    if isinstance(node, exp.Extract):
        return f"extract({node.this.name.lower()} from {item_text(node.expression, scope)})"
    if isinstance(node, exp.Is):
        return f"({item_text(node.this, scope)} is {node.expression.sql().lower()})"
    if isinstance(node, exp.Collate):
        return f"({item_text(node.this, scope)} collate {node.expression.name})"
    if isinstance(node, exp.Literal) and node.is_string:
        return "'" + node.name.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(node, exp.HexString):
        return f"0x{node.this.lower()}"
    if isinstance(node, exp.BitString):
        return f"0x{int(node.this or '0', 2):0{-(-len(node.this) // 8) * 2}x}"
    if isinstance(node, exp.Anonymous):
        name = str(node.this).removeprefix(FUNCTION_MARK).lower()
        return _call_text(name, node.expressions, scope)
    if isinstance(node, exp.Chr):
        return _call_text("char", node.expressions, scope)
    if isinstance(node, exp.Substring):
        given = [node.this, *(node.args.get(name) for name in ("start", "length"))]
        return _call_text("substr", [part for part in given if part is not None], scope)
    if isinstance(node, exp.StrPosition):
        return _call_text("locate", [node.args["substr"], node.this], scope)
    if isinstance(node, exp.Trim):
        return _trim_text(node, scope)
    if isinstance(node, exp.Cast):
        return _cast_text(node, scope)
    if isinstance(node, exp.Case):
        return _case_text(node, scope)
    if isinstance(node, exp.Neg) and not isinstance(node.this, exp.Literal):
        return f"-({item_text(node.this, scope)})"
    return mysql_text(node)


_NAMES = {
    "power": "pow",
    "mid": "substr",
    "substring": "substr",
    "ceil": "ceiling",
    "day": "dayofmonth",
    "lcase": "lower",
    "ucase": "upper",
    "character_length": "char_length",
    "octet_length": "length",
    "adddate": "date_add",
    "subdate": "date_sub",
}
"""Names of functions that MySQL writes otherwise."""


def _call_text(name: str, arguments: list[exp.Expr], scope: Scope) -> str:
    word, _, literal = name.partition("_")
    if literal == "literal":  # DATE '2020-06-15'
        return f"{word.upper()}'{arguments[0].name}'"
    name = _NAMES.get(name, name)
    if name in ("bin", "oct"):
        radix = exp.Literal.number(2 if name == "bin" else 8)
        return _call_text("conv", [*arguments, exp.Literal.number(10), radix], scope)
    if name in ("date_add", "date_sub") and isinstance(arguments[-1], exp.Interval):
        kind = exp.Add if name == "date_add" else exp.Sub
        return item_text(kind(this=arguments[0], expression=arguments[1]), scope)
    if name == "timestampadd":
        size, base = (item_text(argument, scope) for argument in arguments[1:3])
        return f"({base} + interval {size} {arguments[0].name.lower()})"
    parts = [
        item_text(part, scope)
        for argument in arguments
        for part in (argument.expressions if isinstance(argument, exp.Distinct) else (argument,))
    ]
    if name == "datediff":
        return f"({' - '.join(f'to_days({part})' for part in parts)})"
    if name == "row":
        return f"({','.join(parts)})"
    if name == "isnull":
        return f"({parts[0]} is null)"
    if name == "instr":
        return f"locate({','.join(reversed(parts))})"
    if name == "round" and len(arguments) == 1:
        return f"round({','.join(parts)},0)"
    if name == "count" and isinstance(arguments[0], exp.Star):
        return "count(0)"
    distinct = (
        "distinct "
        * (name not in ("min", "max"))
        * any(isinstance(argument, exp.Distinct) for argument in arguments)
    )
    return f"{name}({distinct}{','.join(parts)})"


_BOOLEAN = (exp.Predicate, exp.Connector, exp.Not, exp.Boolean)


def _condition_text(node: exp.Expr, scope: Scope) -> str:
    """Return the text of a value whose truth is needed."""
    text = item_text(node, scope)
    return text if isinstance(node.unnest(), _BOOLEAN) else f"(0 <> {text})"


def _negated_text(node: exp.Expr, scope: Scope) -> str:
    """Return the text of NOT."""
    this = node.unnest()
    if isinstance(this, exp.Is):
        return item_text(this, scope).replace(" is ", " is not ", 1)
    if isinstance(this, exp.Between):
        return _test_text(this, "not between", scope)
    if isinstance(this, exp.In) and this.expressions:
        return _test_text(this, "not in", scope)
    if type(this) in _OPPOSITES:
        opposite = _OPPOSITES[type(this)](this=this.this, expression=this.expression)
        return item_text(opposite, scope)
    text = item_text(this, scope)
    return f"(not({text}))" if isinstance(this, _BOOLEAN) else f"(0 = {text})"


_OPPOSITES: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
}


def _test_text(node: exp.Between | exp.In, word: str, scope: Scope) -> str:
    if isinstance(node, exp.Between):
        values = " and ".join(item_text(node.args[name], scope) for name in ("low", "high"))
    else:
        texts = [item_text(value, scope) for value in node.expressions]
        if len(texts) == 1:
            word = "<>" if word.startswith("not") else "="
        values = texts[0] if len(texts) == 1 else f"({','.join(texts)})"
    return f"({item_text(node.this, scope)} {word} {values})"


def _trim_text(node: exp.Trim, scope: Scope) -> str:
    this, what = item_text(node.this, scope), node.expression
    side = (node.args.get("position") or "both").lower()
    inside = f"{side} {item_text(what, scope)} from {this}" if what is not None else this
    return f"trim({inside})"


def _cast_text(node: exp.Cast, scope: Scope) -> str:
    kind = mysql_text(node.args["to"])
    if kind.upper().startswith("CHAR CHARACTER SET "):  # CONVERT(... USING utf8mb4)
        return f"convert({item_text(node.this, scope)} using {kind.split()[-1]})"
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
