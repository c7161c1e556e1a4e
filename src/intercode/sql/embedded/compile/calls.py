"""Calls of functions: which of ours answers for which of MySQL's, and the type of its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from intercode.sql.dialect.errors import fault, unable
from intercode.sql.dialect.keywords import FUNCTIONS, words
from intercode.sql.dialect.parser import MARK, written
from intercode.sql.embedded.catalog.types import (
    BOOL,
    DATE,
    DATETIME,
    DOUBLE,
    INT,
    JSON,
    PLAIN,
    STRING,
    TIME,
    Type,
    joined,
)
from intercode.sql.embedded.compile import aggregates, call_forms, special_functions
from intercode.sql.embedded.compile.arithmetic import Maker
from intercode.sql.embedded.compile.conversions import as_number, as_text
from intercode.sql.embedded.compile.scope import Ex, Scope

Special = Callable[[str, list[exp.Expr], Scope, Maker], Ex]
TEXT = Type("null", 1)
"""In the table below: a string with the collation of the arguments."""

# name: (kinds of the arguments: s string, n number; those after a ? may be left out, * repeats the
# last one), result
_TABLE: dict[str, tuple[str, Type]] = {
    "LOWER": ("s", TEXT), "LCASE": ("s", TEXT), "UPPER": ("s", TEXT), "UCASE": ("s", TEXT),
    "LENGTH": ("s", INT), "OCTET_LENGTH": ("s", INT), "CHAR_LENGTH": ("s", INT),
    "CHARACTER_LENGTH": ("s", INT), "BIT_LENGTH": ("s", INT), "REVERSE": ("s", TEXT),
    "LEFT": ("sn", TEXT), "RIGHT": ("sn", TEXT), "LTRIM": ("s", TEXT), "RTRIM": ("s", TEXT),
    "REPEAT": ("sn", TEXT), "SPACE": ("n", PLAIN), "LPAD": ("sns", TEXT), "RPAD": ("sns", TEXT),
    "REPLACE": ("sss", TEXT), "INSERT": ("snns", TEXT), "MID": ("sn?n", TEXT),
    "SUBSTRING_INDEX": ("ssn", TEXT), "INSTR": ("ss", INT), "LOCATE": ("ss?n", INT),
    "ASCII": ("s", INT), "ORD": ("s", INT), "HEX": ("s", PLAIN), "UNHEX": ("s", STRING),
    "BIN": ("n", PLAIN), "OCT": ("n", PLAIN), "CONV": ("snn", PLAIN), "QUOTE": ("s", TEXT),
    "SOUNDEX": ("s", TEXT), "STRCMP": ("ss", INT), "FIND_IN_SET": ("ss", INT),
    "FORMAT": ("nn?s", PLAIN), "MD5": ("s", PLAIN), "SHA1": ("s", PLAIN), "SHA": ("s", PLAIN),
    "SHA2": ("sn", PLAIN), "CRC32": ("s", INT), "CONCAT_WS": ("ss*", TEXT),
    "FIELD": ("ss*", INT), "ELT": ("ns*", TEXT), "TO_BASE64": ("s", PLAIN),
    "FROM_BASE64": ("s", STRING),
    "SIGN": ("n", INT), "SQRT": ("n", DOUBLE), "EXP": ("n", DOUBLE), "LN": ("n", DOUBLE),
    "LOG": ("n?n", DOUBLE), "LOG2": ("n", DOUBLE), "LOG10": ("n", DOUBLE), "POW": ("nn", DOUBLE),
    "POWER": ("nn", DOUBLE), "SIN": ("n", DOUBLE), "COS": ("n", DOUBLE), "TAN": ("n", DOUBLE),
    "COT": ("n", DOUBLE), "ASIN": ("n", DOUBLE), "ACOS": ("n", DOUBLE), "ATAN": ("n?n", DOUBLE),
    "ATAN2": ("nn", DOUBLE), "DEGREES": ("n", DOUBLE), "RADIANS": ("n", DOUBLE),
    "BIT_COUNT": ("n", INT), "INET_ATON": ("s", INT), "INET_NTOA": ("n", PLAIN),
    "YEAR": ("s", Type("year", 4)), "MONTH": ("s", INT), "DAY": ("s", INT),
    "DAYOFMONTH": ("s", INT), "HOUR": ("s", INT), "MINUTE": ("s", INT), "SECOND": ("s", INT),
    "MICROSECOND": ("s", INT), "QUARTER": ("s", INT), "DAYOFWEEK": ("s", INT),
    "WEEKDAY": ("s", INT), "DAYOFYEAR": ("s", INT), "WEEK": ("s?n", INT),
    "WEEKOFYEAR": ("s", INT), "YEARWEEK": ("s?n", INT), "DAYNAME": ("s", PLAIN),
    "MONTHNAME": ("s", PLAIN), "DATEDIFF": ("ss", INT), "TO_DAYS": ("s", INT),
    "FROM_DAYS": ("n", DATE), "LAST_DAY": ("s", DATE), "DATE": ("s", DATE),
    "MAKEDATE": ("nn", DATE), "DATE_FORMAT": ("ss", PLAIN), "TIME_FORMAT": ("ss", PLAIN),
    "TIME": ("s", TIME), "TIMEDIFF": ("ss", TIME), "SEC_TO_TIME": ("n", TIME),
    "TIME_TO_SEC": ("s", INT), "MAKETIME": ("nnn", TIME), "TIMESTAMP": ("s", DATETIME),
    "PERIOD_ADD": ("nn", INT), "PERIOD_DIFF": ("nn", INT), "FROM_UNIXTIME": ("n", DATETIME),
    "JSON_VALID": ("s", BOOL), "JSON_UNQUOTE": ("s", STRING), "JSON_QUOTE": ("s", STRING),
    "JSON_LENGTH": ("s", INT), "JSON_EXTRACT": ("ss", JSON), "IS_IPV4": ("s", BOOL),
    "REGEXP_LIKE": ("ss", BOOL), "REGEXP_REPLACE": ("sss", TEXT), "REGEXP_SUBSTR": ("ss", TEXT),
    "REGEXP_INSTR": ("ss", INT), "IS_UUID": ("s", BOOL),
}  # fmt: skip
_SAME = {
    "LCASE": "LOWER", "UCASE": "UPPER", "OCTET_LENGTH": "LENGTH",
    "CHARACTER_LENGTH": "CHAR_LENGTH", "SHA": "SHA1", "POWER": "POW", "ATAN2": "ATAN",
    "DAYOFMONTH": "DAY", "MID": "SUBSTRING",
}  # fmt: skip


_MISSING = words("""
    MatchAgainst JSONTable JSONObject JSONObjectAgg JSONArrayAgg JSONValue WeightString
    SessionUser CurrentRole Normalize""")
"""Forms that MySQL has and this engine has not; any other that sqlglot knows is not MySQL's."""


def called(node: exp.Anonymous, scope: Scope, make: Maker) -> Ex:
    """A call by name. Raises StatementError 1305 for a function that MySQL has not, 1582 for a
    wrong number of arguments, and one of our own for what is not supported."""
    marked = str(node.this)
    name = marked.removeprefix(MARK).upper()
    if name == "ROW":
        return make(exp.Tuple(expressions=node.expressions), scope)
    if not marked.startswith(MARK):
        if name in FUNCTIONS:
            raise unable(f"the function {name} in this place")
        raise fault(1305, f"{scope.unit.database}.{marked}")
    if name in aggregates.AGGREGATES:
        return aggregates.aggregate(name, node.expressions, scope, make)
    if name in special_functions.SPECIAL:
        return special_functions.SPECIAL[name](name, node.expressions, scope, make)
    if name not in _TABLE:
        raise unable(f"the function {name}")
    return simple(name, [make(e, scope) for e in node.expressions])


def simple(name: str, args: list[Ex]) -> Ex:
    """A call of a function whose arguments and result follow the table."""
    spec, result = _TABLE[name]
    needed, _, optional = spec.partition("?")
    endless = needed.endswith("*")
    kinds = needed.rstrip("*") + optional
    if len(args) < len(needed.rstrip("*")) or (len(args) > len(kinds) and not endless):
        raise fault(1582, name)
    kinds += kinds[-1:] * (len(args) - len(kinds))
    if any(a.columns for a in args):
        raise fault(1241, 1)
    made = [as_text(a) if k == "s" else as_number(a) for a, k in zip(args, kinds, strict=False)]
    if name == "HEX" and args[0].type.number:
        made = [as_number(args[0])]
    if result is TEXT:
        texts = [m.type for m, k in zip(made, kinds, strict=False) if k == "s"]
        result = replace(joined(*texts), precision=0)
        if name in ("SOUNDEX", "QUOTE", "INSERT", "REPLACE"):
            result = replace(result, plain=min(result.plain, 1))
        if name in ("LEFT", "REPEAT", "REPLACE", "SUBSTRING_INDEX", "MID", "RTRIM", "REVERSE"):
            result = replace(result, plain=0)  # a blank may come to stand at the end
    sql = f"mysql_{_SAME.get(name, name).lower()}({', '.join(m.sql for m in made)})"
    aggregate = any(a.aggregate for a in args)
    return Ex(sql, replace(result, nullable=True), aggregate=aggregate)


def special(node: exp.Func, scope: Scope, make: Maker) -> Ex:
    """A call in a form of its own: TRIM, SUBSTRING, EXTRACT, GROUP_CONCAT, CURRENT_DATE, …"""
    if isinstance(node, exp.GroupConcat):
        return aggregates.group_concat(node, scope, make)
    handler = call_forms.FORMS.get(type(node))
    if handler is not None:
        return handler(node, scope, make)
    if isinstance(node, (exp.Binary, exp.Predicate)):
        raise unable(f"the expression {written(node)[:80]}")
    name = node.sql_name()
    if type(node).__name__ in _MISSING:
        raise unable(f"the function {name}")
    raise fault(1305, f"{scope.unit.database}.{name}")
