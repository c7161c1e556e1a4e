"""Compiles calls of functions."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from intercode_sql.dialect.errors import argument_count_error, mysql_error, unsupported
from intercode_sql.dialect.keywords import AGGREGATE_FUNCTIONS, FUNCTION_NAMES, word_set
from intercode_sql.dialect.parser import FUNCTION_MARK, mysql_text
from intercode_sql.embedded.catalog.types import BYTES, INT, Type, concatenation_type
from intercode_sql.embedded.compile import aggregates, special_functions
from intercode_sql.embedded.compile.conversions import (
    as_bytes,
    as_characters,
    as_clock_text,
    as_integer,
    as_moment_text,
    as_number,
    as_text,
    as_texts,
    quote_text,
    text_constant,
    time_of_this_day,
    value_constant,
)
from intercode_sql.embedded.compile.item_text import item_text
from intercode_sql.embedded.compile.scope import Expression, Scope, compile_expression, compiles
from intercode_sql.embedded.compile.special_functions import (
    current_time,
    floor_ceiling,
    session_function,
)
from intercode_sql.embedded.compile.strict_values import logarithm_argument
from intercode_sql.embedded.functions.intervals import unit_has_time
from intercode_sql.embedded.functions.registry import ARGUMENT_TEXT, SCALARS, Argument

_UNSUPPORTED_FORMS = word_set("""
    MatchAgainst JSONTable JSONObject JSONObjectAgg JSONArrayAgg JSONValue WeightString
    SessionUser CurrentRole Normalize""")
"""sqlglot's names of functions that MySQL has and this engine lacks. All others are not MySQL's."""


@compiles(exp.Anonymous)
def function_call(node: exp.Anonymous, scope: Scope) -> Expression:
    """Compile a call by name.

    Raises StatementError 1305 for an unknown function, 1582 for a wrong number of arguments, and an
    error of this engine for an unsupported function.
    """
    marked = str(node.this)
    name = marked.removeprefix(FUNCTION_MARK).upper()
    if any(isinstance(e, (exp.Select, exp.SetOperation)) for e in node.expressions):
        raise mysql_error(1064, "", 1)  # a subquery without brackets of its own
    if name == "ROW":
        return compile_expression(exp.Tuple(expressions=node.expressions), scope)
    if not marked.startswith(FUNCTION_MARK):
        if name in FUNCTION_NAMES:
            raise unsupported(f"the function {name} here")
        raise mysql_error(1305, f"{scope.context.database}.{marked}")
    if name in AGGREGATE_FUNCTIONS:
        return aggregates.aggregate_call(name, node.expressions, scope)
    if name in special_functions.SPECIAL_FUNCTIONS:
        return special_functions.SPECIAL_FUNCTIONS[name](name, node.expressions, scope)
    if name not in SCALARS:
        raise unsupported(f"the function {name}")
    args = [
        _on_this_day(compile_expression(e, scope), name, i, scope)
        for i, e in enumerate(node.expressions)
    ]
    if name in _OF_DOCUMENTS and args:
        _require_document(name, args[0].type)
    return simple_call(name, args, item_text(node, scope) if SCALARS[name].quoted else "")


_OF_DOCUMENTS = frozenset({"JSON_EXTRACT", "JSON_LENGTH", "JSON_UNQUOTE"})
"""Functions whose first argument is a JSON document, or its text."""


def _require_document(name: str, kind: Type) -> None:
    """Raise StatementError for a value of a type that is never a JSON document."""
    if kind.binary:
        raise unsupported(f"{name} of a byte string")
    if kind.number or kind.moment:
        raise mysql_error(3064 if name == "JSON_UNQUOTE" else 3146, 1, name.lower())


def _on_this_day(value: Expression, name: str, position: int, scope: Scope) -> Expression:
    """Return an argument that must be a date. A time is one of the current day."""
    parameters = SCALARS[name].arguments
    if value.type.kind != "time" or parameters[min(position, len(parameters) - 1)].kind != "moment":
        return value
    return time_of_this_day(value, scope)


_NUMBER_TEXTS = frozenset({"BIN", "OCT", "CONV"})
"""Functions that read a number from a text."""


def simple_call(name: str, args: list[Expression], text: str = "") -> Expression:
    """Compile a call of a registered scalar function. ``text`` is that of the call.

    Raises StatementError 1582 for a wrong number of arguments and 1241 for a row as an argument.
    """
    function = SCALARS[name]
    parameters = function.parameters(len(args))
    if parameters is None:
        raise argument_count_error(name)
    if any(a.columns for a in args):
        raise mysql_error(1241, 1)
    if name in _NUMBER_TEXTS:
        bits = args[0].type.bits
        args = [as_number(a) if a.type.bits else a for a in args]
        if name == "CONV" and bits:  # a BIT is a number, whatever the base it is read in
            args[0] = simple_call(name, [args[0], value_constant(10), args[1]])
    arguments = [_as_argument(a, p) for a, p in zip(args, parameters, strict=True)]
    if name == "FORMAT" and arguments[0].type.kind in ("double", "float"):  # halves to even
        number, digits = arguments[0], arguments[1].sql
        arguments[0] = replace(number, sql=f"mysql_round({number.sql}, MAX({digits}, 0), 0)")
    result = function.returns
    texts = [m.type for m, p in zip(arguments, parameters, strict=True) if p.kind == "text"]
    if len(texts) > 1 and any(t.binary for t in texts):
        kind = concatenation_type(*texts)
        to_bytes = kind.binary and function.returns is ARGUMENT_TEXT
        arguments = [
            as_bytes(m) if to_bytes and m.type.charset else as_characters(m, kind)
            for m in arguments
        ]
    if result is ARGUMENT_TEXT:
        long = any(t.long for t in texts)
        result = concatenation_type(*texts)
        result = replace(result, strong=True) if result.binary and long else result
        plain = min(result.plain, function.nocase_level)
        result = replace(result, precision=0, plain=plain)
    if function.takes_bytes and result is not ARGUMENT_TEXT and function.returns.kind != "null":
        arguments = [as_bytes(m) if m.type.charset else m for m in arguments]
    parts = [m.sql for m in arguments]
    if name in _LOGARITHMS:
        bases = len(parts) - 1
        parts = [logarithm_argument(part, i < bases) for i, part in enumerate(parts)]
    if function.quoted:
        parts.append(quote_text(text))
    if function.collated:
        kind = concatenation_type(*(m.type for m in arguments if m.type.text))
        parts.insert(0, "'bytes'" if kind.binary else f"'{kind.collation}'")
    sql = f"{function.sqlite_name}({', '.join(parts)})"
    if result.binary and function.returns is ARGUMENT_TEXT:
        sql = f"CAST({sql} AS BLOB)"
    if name in _OF_SECONDS:
        result = replace(result, scale=_fraction_digits(args[-1].type))
    if name == "TIME":
        result = replace(result, scale=_clock_digits(args[0]))
    if name == "TIMESTAMP":
        result = replace(result, scale=max(a.type.moment * (a.type.scale or 0) for a in args))
    aggregate = any(a.aggregate for a in args)
    return Expression(sql, replace(result, nullable=True), aggregate=aggregate)


_LOGARITHMS = frozenset({"LN", "LOG", "LOG2", "LOG10"})
_OF_SECONDS = frozenset({"SEC_TO_TIME", "MAKETIME", "FROM_UNIXTIME"})
"""Functions whose result has the fraction of their last argument."""


def _fraction_digits(kind: Type) -> int:
    exact = kind.moment or kind.kind in ("int", "year", "decimal", "null")
    return min(kind.scale or 0, 6) if exact else 6


def _clock_digits(ex: Expression) -> int:
    """Return the digits of the fraction of a value as a time: of a constant those that it has."""
    if isinstance(ex.literal, str):
        return min(6, len(ex.literal.partition(".")[2]))
    return _fraction_digits(ex.type)


def _as_argument(value: Expression, parameter: Argument) -> Expression:
    if parameter.kind == "integer":
        return as_integer(value)
    if parameter.kind == "moment":
        return as_moment_text(value)
    if parameter.kind == "clock":
        return as_clock_text(value)
    if parameter.kind == "text" or (parameter.kind != "number" and not value.type.number):
        return as_text(value)
    return as_number(value)


@compiles(exp.Func)
def _unknown_call(node: exp.Func, scope: Scope) -> Expression:
    if isinstance(node, (exp.Binary, exp.Predicate)):
        raise unsupported(f"the expression {mysql_text(node)[:80]}")
    name = node.sql_name()
    if type(node).__name__ in _UNSUPPORTED_FORMS:
        raise unsupported(f"the function {name}")
    raise mysql_error(1305, f"{scope.context.database}.{name}")


# ---------------------------------------------------------------- calls with syntax of their own
@compiles(exp.Trim)
def _trim(node: exp.Trim, scope: Scope) -> Expression:
    what = node.expression
    chars = compile_expression(what, scope) if what is not None else text_constant(" ")
    (this, chars), kind = as_texts([compile_expression(node.this, scope), chars])
    kind = kind if kind.binary else this.type
    side = (node.args.get("position") or "BOTH").upper()
    kind = replace(kind, plain=min(kind.plain, 2 if what is None else 0), fixed=False)
    return Expression(f"mysql_trim({this.sql}, {chars.sql}, '{side}')", kind.as_nullable())


@compiles(exp.Substring)
def _substring(node: exp.Substring, scope: Scope) -> Expression:
    parts = [as_text(compile_expression(node.this, scope))]
    for name in ("start", "length"):
        if node.args.get(name) is not None:
            parts.append(as_integer(compile_expression(node.args[name], scope)))
    kind = replace(parts[0].type, plain=0, precision=0, fixed=False)
    return Expression(f"mysql_substring({', '.join(p.sql for p in parts)})", kind.as_nullable())


@compiles(exp.StrPosition)
def _position(node: exp.StrPosition, scope: Scope) -> Expression:
    a, b = (
        as_text(compile_expression(node.args["substr"], scope)),
        as_text(compile_expression(node.this, scope)),
    )
    return simple_call("LOCATE", [a, b])


@compiles(exp.Extract)
def _extract(node: exp.Extract, scope: Scope) -> Expression:
    context = node.this.name.upper()
    this = compile_expression(node.expression, scope)
    this = this if unit_has_time(context) else time_of_this_day(this, scope)
    text = as_clock_text(this) if unit_has_time(context) else as_moment_text(this)
    return Expression(f"mysql_extract('{context}', {text.sql})", INT)


@compiles(
    exp.CurrentDate,
    exp.CurrentTime,
    exp.CurrentTimestamp,
    exp.UtcDate,
    exp.UtcTime,
    exp.UtcTimestamp,
    exp.Localtime,
    exp.Localtimestamp,
)
def _current_time(node: exp.Func, scope: Scope) -> Expression:
    names: dict[type[exp.Expr], str] = {
        exp.CurrentDate: "CURDATE",
        exp.CurrentTime: "CURTIME",
        exp.UtcDate: "CURDATE",
        exp.UtcTime: "CURTIME",
    }
    return current_time(names.get(type(node), "NOW"), [], scope)


@compiles(exp.CurrentUser)
def _user(node: exp.CurrentUser, scope: Scope) -> Expression:
    return session_function("USER", [], scope)


@compiles(exp.Chr)
def _chr(node: exp.Chr, scope: Scope) -> Expression:
    parts = [as_integer(compile_expression(e, scope)).sql for e in node.expressions]
    return Expression(f"mysql_char({', '.join(parts)})", BYTES)


@compiles(exp.Floor, exp.Ceil)
def _floor(node: exp.Func, scope: Scope) -> Expression:
    name = "FLOOR" if isinstance(node, exp.Floor) else "CEIL"
    return floor_ceiling(name, [node.this], scope)


@compiles(exp.JSONExtract, exp.JSONExtractScalar)
def _json_operator(node: exp.JSONExtract, scope: Scope) -> Expression:
    raise unsupported("the operators -> and ->> (JSON_EXTRACT is there)")
