"""Compiles functions whose arguments or types follow rules of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from intercode_sql.dialect.errors import (
    access_denied,
    argument_count_error,
    mysql_error,
    unsupported,
)
from intercode_sql.embedded.catalog.collations import collate_clause
from intercode_sql.embedded.catalog.types import (
    ASCII_STRING,
    BOOL,
    DATE,
    DATETIME,
    DOUBLE,
    INT,
    JSON_TEXT,
    TIME,
    decimal,
    integer_digits,
    merge_types,
)
from intercode_sql.embedded.compile.arithmetic import (
    add_interval,
    concatenate,
    modulo,
)
from intercode_sql.embedded.compile.comparisons import compare
from intercode_sql.embedded.compile.conversions import (
    as_bytes,
    as_clock_text,
    as_integer,
    as_moment_text,
    as_number,
    as_temporal,
    as_text,
    as_texts,
    chosen_sql,
    convert_to,
    on_this_day,
    quote_text,
    time_order,
    truth_sql,
    value_constant,
)
from intercode_sql.embedded.compile.scope import Expression, Scope, compile_expression
from intercode_sql.embedded.compile.strict_values import parsed_date
from intercode_sql.embedded.functions.registry import SCALARS

Args = list[exp.Expr]
SpecialFunction = Callable[[str, Args, Scope], Expression]

SPECIAL_FUNCTIONS: dict[str, SpecialFunction] = {}
"""Functions that are compiled by code of their own, by their names in upper case."""


def special(*names: str) -> Callable[[SpecialFunction], SpecialFunction]:
    """Register a function that compiles calls of these names to SQLite's SQL."""

    def register(function: SpecialFunction) -> SpecialFunction:
        for name in names:
            if name in SPECIAL_FUNCTIONS or name in SCALARS:
                raise ValueError(f"the SQL function {name} is registered twice")
            SPECIAL_FUNCTIONS[name] = function
        return function

    return register


def _compile_arguments(
    name: str, args: Args, scope: Scope, low: int, high: int
) -> list[Expression]:
    out = [compile_expression(a, scope) for a in args]  # errors of inner calls come first
    if not low <= len(args) <= high:
        raise argument_count_error(name)
    if any(o.columns for o in out):
        raise mysql_error(1241, 1)
    return out


@special("IF")
def _if(name: str, args: Args, scope: Scope) -> Expression:
    test, *values = _compile_arguments(name, args, scope, 3, 3)
    yes, no = on_this_day(values, scope)
    kind = merge_types(yes.type, no.type)
    a, b = convert_to(yes, kind), convert_to(no, kind)
    return Expression(f"(CASE WHEN {truth_sql(test)} THEN {a.sql} ELSE {b.sql} END)", kind)


@special("IFNULL", "COALESCE")
def _coalesce(name: str, args: Args, scope: Scope) -> Expression:
    arguments = _compile_arguments(
        name, args, scope, 2 if name == "IFNULL" else 1, 2 if name == "IFNULL" else 99
    )
    arguments = on_this_day(arguments, scope)
    kind = merge_types(*(m.type for m in arguments))
    kind = replace(kind, nullable=all(m.type.nullable for m in arguments))
    if len(arguments) == 1:
        return arguments[0]
    parts = [convert_to(m, kind).sql for m in arguments]
    if name == "COALESCE":
        parts = [chosen_sql(m, kind) for m in arguments]
    return Expression(f"COALESCE({', '.join(parts)})", kind)


@special("NULLIF")
def _nullif(name: str, args: Args, scope: Scope) -> Expression:
    a, b = _compile_arguments(name, args, scope, 2, 2)
    same = compare("=", *on_this_day([a, b], scope)).sql
    return Expression(f"(CASE WHEN {same} THEN NULL ELSE {a.sql} END)", a.type.as_nullable())


@special("ISNULL")
def _isnull(name: str, args: Args, scope: Scope) -> Expression:
    (a,) = _compile_arguments(name, args, scope, 1, 1)
    return Expression(f"({a.sql} IS NULL)", replace(BOOL, nullable=False))


@special("GREATEST", "LEAST")
def _greatest_least(name: str, args: Args, scope: Scope) -> Expression:
    arguments = on_this_day(_compile_arguments(name, args, scope, 2, 99), scope)
    kind = merge_types(*(m.type for m in arguments))
    word = "MAX" if name == "GREATEST" else "MIN"
    values = [convert_to(m, kind) for m in arguments]
    parts = [v.sql for v in values]
    clause = collate_clause(True, *(v.type for v in values)) if kind.kind == "string" else ""
    if kind.kind == "time" and any(time_order(v) != v.sql for v in values):
        ordered = ", ".join(f"mysql_time_order({part})" for part in parts)
        return Expression(f"mysql_ordered_time({word}({ordered}), 0)", kind)
    if word == "MIN":  # SQLite returns the last of equal ones, MySQL the first
        parts.reverse()
    sql = f"{word}({parts[0]}{clause}, {', '.join(parts[1:])})"
    if not kind.text:
        return Expression(sql, kind)
    return Expression(sql, kind, number=f"{word}({', '.join(as_number(m).sql for m in arguments)})")


@special("CONCAT")
def _concat(name: str, args: Args, scope: Scope) -> Expression:
    return concatenate(_compile_arguments(name, args, scope, 1, 999))


@special("ROUND", "TRUNCATE")
def _round(name: str, args: Args, scope: Scope) -> Expression:
    arguments = [as_number(m) for m in _compile_arguments(name, args, scope, 1, 2)]
    number = arguments[0]
    if name == "TRUNCATE" and len(arguments) == 1:
        raise argument_count_error(name)
    digits = as_integer(arguments[1]) if len(arguments) > 1 else value_constant(0)
    kind = number.type
    exact = kind.kind in ("int", "decimal", "year")
    sql = f"mysql_{name.lower()}({number.sql}, {digits.sql}, {int(exact)})"
    if kind.kind in ("int", "year"):
        return Expression(f"CAST({sql} AS INTEGER)", replace(INT, nullable=True))
    constant_digits = digits.literal if isinstance(digits.literal, int) else None
    if not exact:
        fixed = None if constant_digits is None else max(0, min(constant_digits, 30))
        fixed = fixed if kind.scale is not None or fixed == 0 else None
        return Expression(sql, replace(DOUBLE, scale=fixed))
    scale = (kind.scale or 0) if constant_digits is None else max(0, min(constant_digits, 30))
    return Expression(sql, replace(decimal(integer_digits(kind) + 1 + scale, scale), nullable=True))


@special("FLOOR", "CEIL", "CEILING")
def floor_ceiling(name: str, args: Args, scope: Scope) -> Expression:
    """FLOOR and CEILING."""
    (a,) = _compile_arguments(name, args, scope, 1, 1)
    number = as_number(a)
    word = "floor" if name == "FLOOR" else "ceiling"
    if number.type.kind in ("int", "year"):
        return number
    sql = f"mysql_{word}({number.sql})"
    exact = number.type.kind == "decimal"
    return (
        Expression(f"CAST({sql} AS INTEGER)", INT)
        if exact
        else Expression(sql, replace(DOUBLE, scale=0))
    )


@special("DATE_LITERAL", "TIME_LITERAL", "TIMESTAMP_LITERAL")
def _moment_literal(name: str, args: Args, scope: Scope) -> Expression:
    """Compile ``DATE '...'``. Raises StatementError 1525 for a text that is not one."""
    kind = {"DATE": "date", "TIME": "time"}.get(name.partition("_")[0], "datetime")
    found = as_temporal(compile_expression(args[0], scope), kind)
    return replace(found, type=replace(found.type, nullable=False))


@special("ABS")
def _abs(name: str, args: Args, scope: Scope) -> Expression:
    (a,) = _compile_arguments(name, args, scope, 1, 1)
    number = as_number(a)
    return Expression(f"ABS({number.sql})", number.type)


@special("MOD")
def _mod(name: str, args: Args, scope: Scope) -> Expression:
    a, b = _compile_arguments(name, args, scope, 2, 2)
    return modulo(as_number(a), as_number(b))


@special("NOW", "CURDATE", "CURTIME", "SYSDATE", "UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP")
def current_time(name: str, args: Args, scope: Scope) -> Expression:
    """Compile the date or the time at which the statement began."""
    scope.context.volatile = True
    moment = scope.context.now
    if name in ("CURDATE", "UTC_DATE"):
        return Expression(quote_text(moment[:10]), DATE)
    if name in ("CURTIME", "UTC_TIME"):
        return Expression(quote_text(moment[11:]), TIME)
    return Expression(quote_text(moment), DATETIME)


@special("DATE_ADD", "DATE_SUB", "ADDDATE", "SUBDATE")
def _date_add(name: str, args: Args, scope: Scope) -> Expression:
    if len(args) != 2:
        raise argument_count_error(name)
    interval = args[1]
    while isinstance(interval, exp.Paren):
        interval = interval.this
    if not isinstance(interval, exp.Interval):
        if name in ("DATE_ADD", "DATE_SUB"):
            raise mysql_error(1064, "", 1)
        interval = exp.Interval(this=interval, unit=exp.Var(this="DAY"))
    sign = -1 if name in ("DATE_SUB", "SUBDATE") else 1
    return add_interval(compile_expression(args[0], scope), interval, sign, scope)


@special("TIMESTAMPDIFF", "TIMESTAMPADD")
def _timestampdiff(name: str, args: Args, scope: Scope) -> Expression:
    if len(args) != 3:
        raise argument_count_error(name)
    context = args[0].name.upper().removeprefix("SQL_TSI_")
    if name == "TIMESTAMPADD":
        size = compile_expression(args[1], scope)
        unit = exp.Interval(this=exp.Null(), unit=exp.Var(this=context))
        return add_interval(compile_expression(args[2], scope), unit, 1, scope, size)
    a, b = (as_moment_text(compile_expression(x, scope)) for x in args[1:])
    return Expression(f"mysql_timestampdiff('{context}', {a.sql}, {b.sql})", INT)


@special("ADDTIME", "SUBTIME")
def _addtime(name: str, args: Args, scope: Scope) -> Expression:
    a, b = _compile_arguments(name, args, scope, 2, 2)
    kinds = {"date": DATETIME, "datetime": DATETIME, "time": TIME}
    kind = replace(kinds.get(a.type.kind, replace(ASCII_STRING, dated=True)), scale=6)
    first = as_clock_text(a) if a.type.moment else as_text(a)
    return Expression(f"mysql_{name.lower()}({first.sql}, {as_clock_text(b).sql})", kind)


@special("TIMEDIFF")
def _timediff(name: str, args: Args, scope: Scope) -> Expression:
    """Compile the difference of two times, or of two dates. Others have none."""
    values = _compile_arguments(name, args, scope, 2, 2)
    dates = [v.type.kind == "date" for v in values]
    if any(dates) and not all(dates):
        return Expression("NULL", TIME)
    parts = [(as_clock_text(v) if v.type.moment else as_text(v)).sql for v in values]
    return Expression(f"mysql_timediff({', '.join(parts)})", TIME)


@special("FIELD")
def _field(name: str, args: Args, scope: Scope) -> Expression:
    """Compile the position of a value among others. Values of different kinds are compared as
    doubles."""
    values = _compile_arguments(name, args, scope, 2, 999)
    if all(v.type.kind in ("string", "bytes", "json", "null") or v.type.moment for v in values):
        texts, kind = as_texts(values)
        texts = [as_bytes(t) for t in texts] if kind.binary else texts
        collation = f"'{kind.collation}', "
        return Expression(f"mysql_field({collation}{', '.join(t.sql for t in texts)})", INT)
    numbers = ", ".join(as_number(v).sql for v in values)
    return Expression(f"mysql_field('bin', {numbers})", INT)


@special("JSON_QUOTE")
def _json_quote(name: str, args: Args, scope: Scope) -> Expression:
    (a,) = _compile_arguments(name, args, scope, 1, 1)
    if a.type.number or a.type.moment:
        raise mysql_error(3064, 1, name.lower())
    if a.type.binary:
        raise unsupported(f"{name} of a byte string")
    return Expression(f"mysql_json_quote({as_text(a).sql})", JSON_TEXT)


@special("UNIX_TIMESTAMP")
def _unix_timestamp(name: str, args: Args, scope: Scope) -> Expression:
    arguments = _compile_arguments(name, args, scope, 0, 1)
    if not arguments:
        scope.context.volatile = True
        return Expression(f"mysql_unix_timestamp({quote_text(scope.context.now)})", INT)
    return Expression(f"mysql_unix_timestamp({as_text(arguments[0]).sql})", INT)


@special("STR_TO_DATE")
def _str_to_date(name: str, args: Args, scope: Scope) -> Expression:
    a, b = _compile_arguments(name, args, scope, 2, 2)
    form = b.literal if isinstance(b.literal, str) else "%Y %H"
    clock = any(f"%{c}" in form for c in "HhIiklpRrSsTf")
    day = any(f"%{c}" in form for c in "abcdDeMmUuYyj")
    kind = DATETIME if clock and day else TIME if clock else DATE
    text = as_text(a).sql
    sql = parsed_date(f"mysql_str_to_date({text}, {as_text(b).sql})", text)
    return Expression(sql, kind)


@special(
    "DATABASE",
    "SCHEMA",
    "USER",
    "SESSION_USER",
    "SYSTEM_USER",
    "VERSION",
    "CONNECTION_ID",
    "LAST_INSERT_ID",
    "ROW_COUNT",
    "FOUND_ROWS",
)
def session_function(name: str, args: Args, scope: Scope) -> Expression:
    """Compile a function that returns a value of the session."""
    if args and name != "LAST_INSERT_ID":
        raise argument_count_error(name)
    scope.context.volatile = True
    value = scope.context.session_values.get(name)
    if name in ("DATABASE", "SCHEMA"):
        value = scope.context.database or None
    return value_constant(value)


@special("ANY_VALUE")
def _any_value(name: str, args: Args, scope: Scope) -> Expression:
    (a,) = _compile_arguments(name, args, scope, 1, 1)
    return a


@special("RAND")
def _rand(name: str, args: Args, scope: Scope) -> Expression:
    scope.context.volatile = True
    if args and not isinstance(args[0], exp.Literal):
        raise unsupported("RAND with a seed that is not a constant")
    seed = args[0].name if args else "NULL"
    return Expression(f"mysql_rand({seed})", DOUBLE)


@special("SLEEP")
def _sleep(name: str, args: Args, scope: Scope) -> Expression:
    scope.context.volatile = True
    (a,) = _compile_arguments(name, args, scope, 1, 1)
    return Expression(f"mysql_sleep({as_number(a).sql})", INT)


@special("VALUES")
def _values(name: str, args: Args, scope: Scope) -> Expression:
    raise unsupported("VALUES() outside ON DUPLICATE KEY UPDATE")


@special("LOAD_FILE", "GET_LOCK", "RELEASE_LOCK", "BENCHMARK")
def _denied_function(name: str, args: Args, scope: Scope) -> Expression:
    raise access_denied(f"{name}()", "it accesses more than the database")
