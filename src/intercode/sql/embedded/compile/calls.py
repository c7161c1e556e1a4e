"""Calls of functions: which of ours answers for which of MySQL's, and the type of its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from intercode.sql.dialect.errors import mysql_error, unsupported
from intercode.sql.dialect.keywords import FUNCTION_NAMES, word_set
from intercode.sql.dialect.parser import FUNCTION_MARK, mysql_text
from intercode.sql.embedded.catalog.types import (
    ASCII_STRING,
    BOOL,
    DATE,
    DATETIME,
    DOUBLE,
    INT,
    JSON,
    STRING,
    TIME,
    Type,
    concatenation_type,
)
from intercode.sql.embedded.compile import aggregates, call_forms, special_functions
from intercode.sql.embedded.compile.arithmetic import ExpressionCompiler
from intercode.sql.embedded.compile.conversions import as_number, as_text
from intercode.sql.embedded.compile.scope import Expression, Scope

Special = Callable[[str, list[exp.Expr], Scope, ExpressionCompiler], Expression]
ARGUMENT_TEXT = Type("null", 1)
"""In the table below: a string with the collation of the arguments."""

# name: (kinds of the arguments: s string, n number; those after a ? may be left out, * repeats the
# last one), result
_SIGNATURES: dict[str, tuple[str, Type]] = {
    "LOWER": ("s", ARGUMENT_TEXT), "LCASE": ("s", ARGUMENT_TEXT), "UPPER": ("s", ARGUMENT_TEXT), "UCASE": ("s", ARGUMENT_TEXT),
    "LENGTH": ("s", INT), "OCTET_LENGTH": ("s", INT), "CHAR_LENGTH": ("s", INT),
    "CHARACTER_LENGTH": ("s", INT), "BIT_LENGTH": ("s", INT), "REVERSE": ("s", ARGUMENT_TEXT),
    "LEFT": ("sn", ARGUMENT_TEXT), "RIGHT": ("sn", ARGUMENT_TEXT), "LTRIM": ("s", ARGUMENT_TEXT), "RTRIM": ("s", ARGUMENT_TEXT),
    "REPEAT": ("sn", ARGUMENT_TEXT), "SPACE": ("n", ASCII_STRING), "LPAD": ("sns", ARGUMENT_TEXT), "RPAD": ("sns", ARGUMENT_TEXT),
    "REPLACE": ("sss", ARGUMENT_TEXT), "INSERT": ("snns", ARGUMENT_TEXT), "MID": ("sn?n", ARGUMENT_TEXT),
    "SUBSTRING_INDEX": ("ssn", ARGUMENT_TEXT), "INSTR": ("ss", INT), "LOCATE": ("ss?n", INT),
    "ASCII": ("s", INT), "ORD": ("s", INT), "HEX": ("s", ASCII_STRING), "UNHEX": ("s", STRING),
    "BIN": ("n", ASCII_STRING), "OCT": ("n", ASCII_STRING), "CONV": ("snn", ASCII_STRING), "QUOTE": ("s", ARGUMENT_TEXT),
    "SOUNDEX": ("s", ARGUMENT_TEXT), "STRCMP": ("ss", INT), "FIND_IN_SET": ("ss", INT),
    "FORMAT": ("nn?s", ASCII_STRING), "MD5": ("s", ASCII_STRING), "SHA1": ("s", ASCII_STRING), "SHA": ("s", ASCII_STRING),
    "SHA2": ("sn", ASCII_STRING), "CRC32": ("s", INT), "CONCAT_WS": ("ss*", ARGUMENT_TEXT),
    "FIELD": ("ss*", INT), "ELT": ("ns*", ARGUMENT_TEXT), "TO_BASE64": ("s", ASCII_STRING),
    "FROM_BASE64": ("s", STRING),
    "SIGN": ("n", INT), "SQRT": ("n", DOUBLE), "EXP": ("n", DOUBLE), "LN": ("n", DOUBLE),
    "LOG": ("n?n", DOUBLE), "LOG2": ("n", DOUBLE), "LOG10": ("n", DOUBLE), "POW": ("nn", DOUBLE),
    "POWER": ("nn", DOUBLE), "SIN": ("n", DOUBLE), "COS": ("n", DOUBLE), "TAN": ("n", DOUBLE),
    "COT": ("n", DOUBLE), "ASIN": ("n", DOUBLE), "ACOS": ("n", DOUBLE), "ATAN": ("n?n", DOUBLE),
    "ATAN2": ("nn", DOUBLE), "DEGREES": ("n", DOUBLE), "RADIANS": ("n", DOUBLE),
    "BIT_COUNT": ("n", INT), "INET_ATON": ("s", INT), "INET_NTOA": ("n", ASCII_STRING),
    "YEAR": ("s", Type("year", 4)), "MONTH": ("s", INT), "DAY": ("s", INT),
    "DAYOFMONTH": ("s", INT), "HOUR": ("s", INT), "MINUTE": ("s", INT), "SECOND": ("s", INT),
    "MICROSECOND": ("s", INT), "QUARTER": ("s", INT), "DAYOFWEEK": ("s", INT),
    "WEEKDAY": ("s", INT), "DAYOFYEAR": ("s", INT), "WEEK": ("s?n", INT),
    "WEEKOFYEAR": ("s", INT), "YEARWEEK": ("s?n", INT), "DAYNAME": ("s", ASCII_STRING),
    "MONTHNAME": ("s", ASCII_STRING), "DATEDIFF": ("ss", INT), "TO_DAYS": ("s", INT),
    "FROM_DAYS": ("n", DATE), "LAST_DAY": ("s", DATE), "DATE": ("s", DATE),
    "MAKEDATE": ("nn", DATE), "DATE_FORMAT": ("ss", ASCII_STRING), "TIME_FORMAT": ("ss", ASCII_STRING),
    "TIME": ("s", TIME), "TIMEDIFF": ("ss", TIME), "SEC_TO_TIME": ("n", TIME),
    "TIME_TO_SEC": ("s", INT), "MAKETIME": ("nnn", TIME), "TIMESTAMP": ("s", DATETIME),
    "PERIOD_ADD": ("nn", INT), "PERIOD_DIFF": ("nn", INT), "FROM_UNIXTIME": ("n", DATETIME),
    "JSON_VALID": ("s", BOOL), "JSON_UNQUOTE": ("s", STRING), "JSON_QUOTE": ("s", STRING),
    "JSON_LENGTH": ("s", INT), "JSON_EXTRACT": ("ss", JSON), "IS_IPV4": ("s", BOOL),
    "REGEXP_LIKE": ("ss", BOOL), "REGEXP_REPLACE": ("sss", ARGUMENT_TEXT), "REGEXP_SUBSTR": ("ss", ARGUMENT_TEXT),
    "REGEXP_INSTR": ("ss", INT), "IS_UUID": ("s", BOOL),
}  # fmt: skip
_SYNONYMS = {
    "LCASE": "LOWER", "UCASE": "UPPER", "OCTET_LENGTH": "LENGTH",
    "CHARACTER_LENGTH": "CHAR_LENGTH", "SHA": "SHA1", "POWER": "POW", "ATAN2": "ATAN",
    "DAYOFMONTH": "DAY", "MID": "SUBSTRING",
}  # fmt: skip


_UNSUPPORTED_FORMS = word_set("""
    MatchAgainst JSONTable JSONObject JSONObjectAgg JSONArrayAgg JSONValue WeightString
    SessionUser CurrentRole Normalize""")
"""Forms that MySQL has and this engine has not; any other that sqlglot knows is not MySQL's."""


def function_call(node: exp.Anonymous, scope: Scope, make: ExpressionCompiler) -> Expression:
    """A call by name. Raises StatementError 1305 for a function that MySQL has not, 1582 for a
    wrong number of arguments, and one of our own for what is not supported."""
    marked = str(node.this)
    name = marked.removeprefix(FUNCTION_MARK).upper()
    if name == "ROW":
        return make(exp.Tuple(expressions=node.expressions), scope)
    if not marked.startswith(FUNCTION_MARK):
        if name in FUNCTION_NAMES:
            raise unsupported(f"the function {name} in this place")
        raise mysql_error(1305, f"{scope.context.database}.{marked}")
    if name in aggregates.AGGREGATE_FUNCTIONS:
        return aggregates.aggregate_call(name, node.expressions, scope, make)
    if name in special_functions.SPECIAL_FUNCTIONS:
        return special_functions.SPECIAL_FUNCTIONS[name](name, node.expressions, scope, make)
    if name not in _SIGNATURES:
        raise unsupported(f"the function {name}")
    return simple_call(name, [make(e, scope) for e in node.expressions])


def simple_call(name: str, args: list[Expression]) -> Expression:
    """A call of a function whose arguments and result follow the table."""
    spec, result = _SIGNATURES[name]
    needed, _, optional = spec.partition("?")
    endless = needed.endswith("*")
    kinds = needed.rstrip("*") + optional
    if len(args) < len(needed.rstrip("*")) or (len(args) > len(kinds) and not endless):
        raise mysql_error(1582, name)
    kinds += kinds[-1:] * (len(args) - len(kinds))
    if any(a.columns for a in args):
        raise mysql_error(1241, 1)
    made = [as_text(a) if k == "s" else as_number(a) for a, k in zip(args, kinds, strict=False)]
    if name == "HEX" and args[0].type.number:
        made = [as_number(args[0])]
    if result is ARGUMENT_TEXT:
        texts = [m.type for m, k in zip(made, kinds, strict=False) if k == "s"]
        result = replace(concatenation_type(*texts), precision=0)
        if name in ("SOUNDEX", "QUOTE", "INSERT", "REPLACE"):
            result = replace(result, plain=min(result.plain, 1))
        if name in ("LEFT", "REPEAT", "REPLACE", "SUBSTRING_INDEX", "MID", "RTRIM", "REVERSE"):
            result = replace(result, plain=0)  # a blank may come to stand at the end
    sql = f"mysql_{_SYNONYMS.get(name, name).lower()}({', '.join(m.sql for m in made)})"
    aggregate = any(a.aggregate for a in args)
    return Expression(sql, replace(result, nullable=True), aggregate=aggregate)


def special_form(node: exp.Func, scope: Scope, make: ExpressionCompiler) -> Expression:
    """A call in a form of its own: TRIM, SUBSTRING, EXTRACT, GROUP_CONCAT, CURRENT_DATE, …"""
    if isinstance(node, exp.GroupConcat):
        return aggregates.group_concat(node, scope, make)
    handler = call_forms.FORMS.get(type(node))
    if handler is not None:
        return handler(node, scope, make)
    if isinstance(node, (exp.Binary, exp.Predicate)):
        raise unsupported(f"the expression {mysql_text(node)[:80]}")
    name = node.sql_name()
    if type(node).__name__ in _UNSUPPORTED_FORMS:
        raise unsupported(f"the function {name}")
    raise mysql_error(1305, f"{scope.context.database}.{name}")
