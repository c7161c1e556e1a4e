"""Evaluates expressions over plain values, for the verdict of a test.

It knows literals, operators, and a few functions and methods without side effects. Numbers and
sequences that would grow without bound are refused, because some of the values come from an agent.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

ALLOWED_FUNCTIONS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        abs,
        all,
        any,
        bool,
        chr,
        complex,
        dict,
        divmod,
        enumerate,
        float,
        frozenset,
        int,
        isinstance,
        len,
        list,
        max,
        min,
        ord,
        reversed,
        round,
        set,
        sorted,
        str,
        sum,
        tuple,
        zip,
    )
}
_MAX_LENGTH = 1_000_000  # elements or characters of a result
_MAX_OPERAND = 1 << 64  # of a multiplication or a power
_MAX_EXPONENT = 1000  # power, or place to round to
_MATH: dict[str, Any] = {
    name: getattr(math, name)
    for name in (
        "isclose",
        "floor",
        "ceil",
        "sqrt",
        "fabs",
        "isnan",
        "isinf",
        "inf",
        "nan",
        "pi",
        "e",
    )
}
_ALLOWED_METHODS: dict[type, str] = {
    str: "strip lstrip rstrip lower upper split splitlines startswith endswith count find index "
    "replace isdigit join",
    list: "count index",
    tuple: "count index",
    dict: "keys values items get",
    set: "issubset issuperset union intersection difference isdisjoint",
    frozenset: "issubset issuperset union intersection difference isdisjoint",
}
PURE_METHODS = {word for words in _ALLOWED_METHODS.values() for word in words.split()}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_OPERATIONS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Invert: operator.invert,
}


def is_math_attribute(node: ast.expr) -> bool:
    """Return whether a node is ``math.name`` for an allowed name."""
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "math"
        and node.attr in _MATH
    )


def is_supported(node: ast.AST) -> bool:
    """Return whether the evaluator supports a node, not counting its parts."""
    if isinstance(node, ast.Name):
        return node.id in ALLOWED_FUNCTIONS
    if isinstance(node, ast.Attribute):
        return is_math_attribute(node)
    if isinstance(node, ast.Call):
        known = (isinstance(node.func, ast.Name) and node.func.id in ALLOWED_FUNCTIONS) or (
            isinstance(node.func, ast.Attribute)
            and (is_math_attribute(node.func) or node.func.attr in PURE_METHODS)
        )
        return known and not any(k.arg is None for k in node.keywords)
    return isinstance(node, tuple(_EVALUATORS))


def evaluate(node: ast.expr | None, names: Mapping[str, Any]) -> Any:
    """Return the value of an expression over plain values.

    Raises ValueError for an unsupported expression, and whatever an operation raises.
    """
    if node is None:
        return None
    evaluator = _EVALUATORS.get(type(node))
    if evaluator is None:
        raise ValueError(f"cannot calculate {ast.unparse(node)!r}")
    return evaluator(node, lambda n: evaluate(n, names), names)


def _call(node: ast.Call, value: Callable[..., Any], names: Mapping[str, Any]) -> Any:
    arguments = [value(a) for a in node.args]
    options = {str(k.arg): value(k.value) for k in node.keywords}
    if isinstance(node.func, ast.Name):
        _check_call(node.func.id, arguments)
        return ALLOWED_FUNCTIONS[node.func.id](*arguments, **options)
    assert isinstance(node.func, ast.Attribute)
    if is_math_attribute(node.func):
        return _MATH[node.func.attr](*arguments, **options)
    owner = value(node.func.value)
    if node.func.attr not in _ALLOWED_METHODS.get(type(owner), "").split():
        raise TypeError(f"{type(owner).__name__} has no {node.func.attr} here")
    if node.func.attr in ("join", "replace"):
        longest = max((_length(a) for a in arguments), default=0) + 1
        if (len(owner) + 1) * longest > _MAX_LENGTH:
            raise ValueError("too long a text")
    return getattr(owner, node.func.attr)(*arguments, **options)


def _check_call(name: str, arguments: list[Any]) -> None:
    """Refuse a call whose arguments would make it slow or use much memory."""
    if name == "sum" and not all(_is_number(v) for v in (*arguments[0], *arguments[1:])):
        raise TypeError("only numbers are summed up here")
    if name == "round" and len(arguments) > 1 and abs(arguments[1] or 0) > _MAX_EXPONENT:
        raise ValueError("too far a place to round to")


def _name(node: ast.Name, value: Callable[..., Any], names: Mapping[str, Any]) -> Any:
    return names[node.id] if node.id in names else ALLOWED_FUNCTIONS[node.id]


def _compare(node: ast.Compare, value: Callable[..., Any], names: Mapping[str, Any]) -> bool:
    left = value(node.left)
    for kind, right in zip(node.ops, node.comparators, strict=True):
        other = value(right)
        if not _COMPARISONS[type(kind)](left, other):
            return False
        left = other
    return True


def _binary(node: ast.BinOp, value: Callable[..., Any], names: Mapping[str, Any]) -> Any:
    left, right = value(node.left), value(node.right)
    both = _is_number(left) and _is_number(right)
    if isinstance(node.op, ast.Mod) and not both:
        raise TypeError("only numbers are divided here")
    if isinstance(node.op, ast.Mult | ast.Pow):
        if any(isinstance(v, int) and abs(v) > _MAX_OPERAND for v in (left, right)):
            raise ValueError("too large a number to calculate with")
        if isinstance(node.op, ast.Pow) and (not both or abs(right) > _MAX_EXPONENT):
            raise ValueError("too large a power")
        if not both and _length(left) * _length(right) > _MAX_LENGTH:
            raise ValueError("too long a sequence")
    return _OPERATIONS[type(node.op)](left, right)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | complex)


def _length(value: Any) -> int:
    return abs(value) if isinstance(value, int) else len(value) if hasattr(value, "__len__") else 0


def _bool(node: ast.BoolOp, value: Callable[..., Any], names: Mapping[str, Any]) -> Any:
    result: Any = None
    for part in node.values:
        result = value(part)
        if bool(result) == isinstance(node.op, ast.Or):
            return result
    return result


def _dict(node: ast.Dict, value: Callable[..., Any], names: Mapping[str, Any]) -> Any:
    return {value(k): value(v) for k, v in zip(node.keys, node.values, strict=True)}


_EVALUATORS: dict[type[ast.AST], Callable[[Any, Callable[..., Any], Mapping[str, Any]], Any]] = {
    ast.Constant: lambda n, v, _: n.value,
    ast.Name: _name,
    ast.Attribute: lambda n, v, _: _MATH[n.attr],
    ast.List: lambda n, v, _: [v(e) for e in n.elts],
    ast.Tuple: lambda n, v, _: tuple(v(e) for e in n.elts),
    ast.Set: lambda n, v, _: {v(e) for e in n.elts},
    ast.Dict: _dict,
    ast.UnaryOp: lambda n, v, _: _OPERATIONS[type(n.op)](v(n.operand)),
    ast.BinOp: _binary,
    ast.BoolOp: _bool,
    ast.Compare: _compare,
    ast.IfExp: lambda n, v, _: v(n.body) if v(n.test) else v(n.orelse),
    ast.Subscript: lambda n, v, _: v(n.value)[v(n.slice)],
    ast.Slice: lambda n, v, _: slice(v(n.lower), v(n.upper), v(n.step)),
    ast.Call: _call,
}
