"""The kinds of the operands of a statement, by the columns and literals in it. A rule about MariaDB
and MySQL 8 names those between which it holds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from hostile.sql.tables import COLUMNS
from intercode_sql.embedded.functions.registry import SCALARS

_S_KINDS = {"k": "int", "i": "int", "v": "text", "e": "enum", "da": "date", "price": "decimal"}
_KINDS = {name: kind for kind, names in COLUMNS.items() for name in names}
COMPARISONS = (
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.NullSafeEQ,
    exp.In,
    exp.Between,
    exp.If,
    exp.Case,
    exp.Nullif,
)
BIT_OPERATORS = (
    exp.BitwiseAnd,
    exp.BitwiseOr,
    exp.BitwiseXor,
    exp.BitwiseLeftShift,
    exp.BitwiseRightShift,
    exp.BitwiseNot,
)
ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.IntDiv, exp.Mod, exp.Neg)
_MOMENTS = ("DATE", "TIME", "STAMP", "NOW", "CUR", "LAST_DAY", "DAYS", "SECOND", "MAKE")
_CASTS = {
    "CHAR": "text",
    "BINARY": "bytes",
    "DATE": "datetime",
    "TIME": "time",
    "DECIMAL": "decimal",
    "DOUBLE": "double",
    "SIGNED": "int",
    "BIGINT": "int",
    "UNSIGNED": "int",
}
DOCUMENTS = (
    "JSON_ARRAY",
    "JSON_OBJECT",
    "JSON_ARRAYAGG",
    "JSON_OBJECTAGG",
    "JSON_SET",
    "JSON_INSERT",
    "JSON_REPLACE",
    "JSON_ARRAY_APPEND",
    "JSON_ARRAY_INSERT",
)
"""Functions that put values into documents."""
_TRANSPARENT = (exp.Paren, exp.Alias, exp.Any, exp.All, exp.Distinct, exp.Max, exp.Min)
_RESULTS = {
    "text": (exp.Concat, exp.Lower, exp.Upper, exp.Substring, exp.Trim, exp.Left, exp.Right),
    "int": (
        exp.Predicate,
        exp.Boolean,
        exp.Not,
        exp.And,
        exp.Or,
        exp.Xor,
        exp.Length,
        exp.IntDiv,
        *BIT_OPERATORS,
    ),
    "double": (exp.Div, exp.Sub, exp.Add, exp.Mul, exp.Mod, exp.Neg),
    "bytes": (exp.HexString, exp.BitString, exp.Unhex, exp.Chr),
}


@lru_cache(maxsize=64)
def tree_of(code: str) -> exp.Expression | None:
    """Return the tree of a statement, or None if it cannot be parsed."""
    try:
        return parse_one(code.replace("REPLACE INTO", "INSERT INTO", 1), dialect="mysql")
    except SqlglotError:
        return None


def kind_of(node: exp.Expression | None) -> str:
    """Return the kind of an expression, or an empty string if it is not known."""
    while isinstance(node, _TRANSPARENT):
        node = node.expressions[0] if isinstance(node, exp.Distinct) else node.this
    if isinstance(node, exp.Subquery):
        node = node.this
    if isinstance(node, exp.Select):
        return kind_of(node.expressions[0])
    if isinstance(node, exp.Column):
        return (_S_KINDS if node.table == "s" else _KINDS).get(node.name, "")
    if isinstance(node, exp.Literal):
        return "text" if node.is_string else "double" if "e" in node.this else "number"
    if isinstance(node, (exp.Cast, exp.Convert)):
        return _cast_kind(node)
    if isinstance(node, exp.Case):
        branches = [*(b.args["true"] for b in node.args["ifs"]), node.args.get("default")]
        kinds = {kind_of(branch) for branch in branches if branch is not None}
        return kinds.pop() if len(kinds) == 1 else "text" if "text" in kinds else ""
    if isinstance(node, (exp.Func, exp.Add, exp.Sub)):
        words = node.sql("mysql").upper()
        name = words.partition("(")[0] if not isinstance(node, exp.Connector) else ""
        if isinstance(node, (exp.Add, exp.Sub)) and "INTERVAL" in words:
            return "datetime"
        if isinstance(node, exp.Func) and name in SCALARS:
            kind = SCALARS[name].returns.kind
            return {"string": "text", "null": "text"}.get(kind, kind)
        if name in DOCUMENTS:
            return "json"
        if isinstance(node, exp.Func) and any(word in name for word in _MOMENTS):
            return "datetime"
    return next((kind for kind, types in _RESULTS.items() if isinstance(node, types)), "")


def _cast_kind(node: exp.Expression) -> str:
    name = node.args["to"].sql("mysql").upper()
    return next((kind for word, kind in _CASTS.items() if name.startswith(word)), "")


def operands(code: str, *types: type[exp.Expression]) -> Iterator[frozenset[str]]:
    """Yield the kinds of the operands of each operator of these types."""
    tree = tree_of(code)
    for node in tree.walk() if tree is not None else ():
        if isinstance(node, types):
            children = [node.this, node.args.get("expression"), *node.expressions]
            children += [node.args.get(n) for n in ("low", "high", "query", "default", "true")]
            for branch in node.args.get("ifs") or ():
                children += [branch.this, branch.args.get("true")]
            for row in [c for c in children if isinstance(c, exp.Tuple)]:
                children += row.expressions
            yield frozenset(kind_of(c) for c in children if isinstance(c, exp.Expression))


def arguments(code: str, *names: str) -> Iterator[frozenset[str]]:
    """Yield the kinds of the arguments of each call of these functions."""
    tree = tree_of(code)
    for node in tree.walk() if tree is not None else ():
        if not isinstance(node, exp.Func) or isinstance(node, exp.Cast):
            continue
        if node.sql("mysql").upper().partition("(")[0] in names:
            children = [v for v in node.args.values() if isinstance(v, exp.Expression)]
            yield frozenset(kind_of(c) for c in [*children, *node.expressions])
