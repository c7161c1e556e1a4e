"""Compiles calls of functions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from intercode_sql.dialect.errors import (
    access_denied,
    argument_count_error,
    mysql_error,
    unsupported,
)
from intercode_sql.dialect.group_by import function_name
from intercode_sql.dialect.keywords import AGGREGATE_FUNCTIONS, word_set
from intercode_sql.dialect.parser import FUNCTION_MARK, mysql_text, parse
from intercode_sql.embedded.catalog.catalog import Column
from intercode_sql.embedded.catalog.collations import collate_clause
from intercode_sql.embedded.catalog.types import (
    ASCII_STRING,
    BOOL,
    BYTES,
    DATE,
    DATETIME,
    DOUBLE,
    INT,
    JSON,
    JSON_TEXT,
    TIME,
    Type,
    concatenation_type,
    decimal,
    integer_digits,
    merge_types,
)
from intercode_sql.embedded.catalog.values import default_value
from intercode_sql.embedded.compile import aggregates
from intercode_sql.embedded.compile.conversions import (
    NULL_EXPRESSION,
    as_bytes,
    as_characters,
    as_clock_text,
    as_integer,
    as_moment_text,
    as_number,
    as_temporal,
    as_text,
    as_texts,
    chosen_sql,
    compared_time,
    convert_to,
    on_this_day,
    quote_text,
    text_constant,
    time_of_this_day,
    truth_sql,
    value_constant,
)
from intercode_sql.embedded.compile.documents import document_type, json_members
from intercode_sql.embedded.compile.model import (
    Expression,
    Scope,
    compile_expression,
    compile_scalar,
    compiles,
)
from intercode_sql.embedded.compile.operators import (
    add_interval,
    compare,
    concatenate,
    is_constant,
    modulo,
    year_constant,
)
from intercode_sql.embedded.compile.strict_values import logarithm_argument, parsed_date
from intercode_sql.embedded.compile.text_in_errors import item_text
from intercode_sql.embedded.functions.intervals import unit_has_time
from intercode_sql.embedded.functions.registry import ARGUMENT_TEXT, SCALARS, Argument

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
    x, y = on_this_day([a, b], scope)
    same = compare("=", year_constant(x, args[0], y), year_constant(y, args[1], x)).sql
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
    if kind.kind == "time" and any(compared_time(v) != v.sql for v in values):
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
    base, interval, days = compile_expression(args[0], scope), args[1], None
    if not isinstance(interval, exp.Interval):
        days = compile_scalar(interval, scope)
        interval = exp.Interval(this=exp.Null(), unit=exp.Var(this="DAY"))
    sign = -1 if name in ("DATE_SUB", "SUBDATE") else 1
    return add_interval(base, interval, sign, scope, days)


@special("TIMESTAMPDIFF", "TIMESTAMPADD")
def _timestampdiff(name: str, args: Args, scope: Scope) -> Expression:
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


@special("INTERVAL")
def _interval(name: str, args: Args, scope: Scope) -> Expression:
    """Compile how many of the numbers behind the first are not greater, or -1 if that is NULL."""
    value, *others = map(as_number, _compile_arguments(name, args, scope, 2, 999))
    tests = " ".join(f"WHEN {value.sql} < {other.sql} THEN {i}" for i, other in enumerate(others))
    sql = f"(CASE WHEN {value.sql} IS NULL THEN -1 {tests} ELSE {len(others)} END)"
    return Expression(sql, replace(INT, nullable=False))


@special("CONVERT_TZ")
def _convert_tz(name: str, args: Args, scope: Scope) -> Expression:
    moment, *zones = _compile_arguments(name, args, scope, 3, 3)
    texts = [as_moment_text(time_of_this_day(moment, scope)), *map(as_text, zones)]
    kind = replace(DATETIME, scale=_clock_digits(moment))
    return Expression(f"mysql_convert_tz({', '.join(t.sql for t in texts)})", kind)


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
        sql = f"CAST(mysql_unix_timestamp({quote_text(scope.context.now)}) AS INTEGER)"
        return Expression(sql, INT)
    moment = time_of_this_day(arguments[0], scope)
    sql = f"mysql_unix_timestamp({as_text(moment).sql})"
    digits = _clock_digits(moment) if moment.type.kind in ("string", "datetime") else 0
    if not digits or (moment.type.kind == "string" and moment.literal is None):
        return Expression(f"CAST({sql} AS INTEGER)", INT)
    return Expression(sql, replace(decimal(11 + digits, digits), nullable=True))


@special("STR_TO_DATE")
def _str_to_date(name: str, args: Args, scope: Scope) -> Expression:
    a, b = _compile_arguments(name, args, scope, 2, 2)
    form = b.literal if isinstance(b.literal, str) else "%Y %H"
    clock = any(f"%{c}" in form for c in "HhIiklpRrSsTf")
    day = any(f"%{c}" in form for c in "abcdDeMmUuYyj")
    kind = DATETIME if clock and day else TIME if clock else DATE
    kind = replace(kind, scale=6) if "%f" in form else kind
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
    if len(args) > (name == "LAST_INSERT_ID"):
        raise argument_count_error(name)
    scope.context.volatile = True
    value = scope.context.session_values.get(name)
    if name in ("DATABASE", "SCHEMA"):
        value = scope.context.database or None
    return value_constant(value)


@special("DEFAULT")
def _default(name: str, args: Args, scope: Scope) -> Expression:
    """Compile the default of a column."""
    if not isinstance(args[0], exp.Column):
        raise unsupported("DEFAULT of what is no column")
    scope.column(args[0])  # the errors of unknown and ambiguous names
    for source in scope.sources:
        column = source.table.column(args[0].name) if source.table is not None else None
        if column is not None and args[0].text("table").lower() in ("", source.name.lower()):
            value = convert_to(compile_scalar(constant_default(column), scope), column.type)
            return replace(value, type=column.type.as_nullable())
    raise unsupported("the default of a column that is no table's")


def constant_default(column: Column) -> exp.Expr:
    """Return what DEFAULT(column) means. Raises StatementError 3773 for the default of an
    expression."""
    if column.computed and str(column.default).startswith("CURRENT_TIMESTAMP"):
        raise unsupported("DEFAULT of a column whose default is the current time")
    if column.computed:
        raise mysql_error(3773)
    return exp.Literal.number(0) if column.auto else default_expression(column)


def default_expression(column: Column) -> exp.Expr:
    """Return the default of a column as an expression. Raises StatementError 1364."""
    if column.computed:
        found: exp.Expr = parse(f"SELECT {column.default}").expressions[0].copy()
        return found
    value = default_value(column, "")
    if value is None:
        return exp.Null()
    return exp.Literal(this=str(value), is_string=isinstance(value, str))


@special("ANY_VALUE")
def _any_value(name: str, args: Args, scope: Scope) -> Expression:
    (a,) = _compile_arguments(name, args, scope, 1, 1)
    return a


@special("RAND")
def _rand(name: str, args: Args, scope: Scope) -> Expression:
    scope.context.volatile = True
    arguments = _compile_arguments(name, args, scope, 0, 1)
    if not arguments:
        return Expression("mysql_rand()", DOUBLE)
    seed = as_integer(arguments[0])
    call = quote_text(scope.context.new_alias()) if seed.literal is not None else "NULL"
    return Expression(f"mysql_seeded_rand({seed.sql}, {call})", DOUBLE)


@special("PI")
def _pi(name: str, args: Args, scope: Scope) -> Expression:
    _compile_arguments(name, args, scope, 0, 0)
    return Expression(repr(math.pi), replace(DOUBLE, scale=6, nullable=False))


@special("UUID")
def _uuid(name: str, args: Args, scope: Scope) -> Expression:
    _compile_arguments(name, args, scope, 0, 0)
    scope.context.volatile = True
    return Expression("mysql_uuid()", replace(ASCII_STRING, precision=36, nullable=False))


@special("JSON_ARRAY", "JSON_OBJECT")
def _json_value(name: str, args: Args, scope: Scope) -> Expression:
    """Compile a document of values, each with the word of what it is."""
    values = [compile_expression(a, scope) for a in args]
    if name == "JSON_OBJECT" and len(values) % 2:
        raise argument_count_error(name)
    pairs = name == "JSON_OBJECT"
    parts = json_members(name, args, values, 2 * pairs)
    kind = document_type(*(v.type for v in (values[1::2] if pairs else values)))
    return Expression(f"mysql_{name.lower()}({', '.join(parts)})", replace(kind, nullable=False))


@special("JSON_SET", "JSON_INSERT", "JSON_REPLACE", "JSON_ARRAY_APPEND", "JSON_ARRAY_INSERT")
def _json_change(name: str, args: Args, scope: Scope) -> Expression:
    """Compile a document that is changed at paths."""
    document, *changes = [compile_expression(a, scope) for a in args] or [NULL_EXPRESSION]
    if len(args) < 3 or len(args) % 2 == 0:
        raise argument_count_error(name)
    _require_document(name, document.type)
    parts = [as_text(document).sql]
    for i in range(0, len(changes), 2):
        value = json_members(name, args[i + 2 : i + 3], changes[i + 1 : i + 2], 0)
        parts += [as_text(changes[i]).sql, *value]
    kind = document_type(document.type, *(v.type for v in changes[1::2]))
    return Expression(f"mysql_{name.lower()}({', '.join(parts)})", kind)


@special("JSON_SEARCH")
def _json_search(name: str, args: Args, scope: Scope) -> Expression:
    values = _compile_arguments(name, args, scope, 3, 999)
    if len(values) > 4:
        raise unsupported("JSON_SEARCH at paths")
    if any(v.type.binary for v in values):
        raise unsupported("JSON_SEARCH of a byte string")
    _require_document(name, values[0].type)
    return Expression(f"mysql_json_search({', '.join(as_text(v).sql for v in values)})", JSON)


@special("SLEEP")
def _sleep(name: str, args: Args, scope: Scope) -> Expression:
    scope.context.volatile = True
    (a,) = _compile_arguments(name, args, scope, 1, 1)
    return Expression(f"mysql_sleep({as_number(a).sql})", INT)


@special("LOAD_FILE", "GET_LOCK", "RELEASE_LOCK", "BENCHMARK")
def _denied_function(name: str, args: Args, scope: Scope) -> Expression:
    raise access_denied(f"{name}()", "it accesses more than the database")


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
    if name == "ROW":
        return compile_expression(exp.Tuple(expressions=node.expressions), scope)
    if not marked.startswith(FUNCTION_MARK) and name not in SCALARS:
        raise mysql_error(1305, f"{scope.context.database}.{marked}")
    if name in AGGREGATE_FUNCTIONS:
        return aggregates.aggregate_call(name, node.expressions, scope)
    if name in SPECIAL_FUNCTIONS:
        return SPECIAL_FUNCTIONS[name](name, node.expressions, scope)
    if name not in SCALARS:
        raise unsupported(f"the function {name}")
    args = [
        _on_this_day(compile_expression(e, scope), name, i, scope)
        for i, e in enumerate(node.expressions)
    ]
    if name in _OF_DOCUMENTS and SCALARS[name].parameters(len(args)):
        _require_document(name, args[0].type)
        made = function_name(node.expressions[0].unnest())
        if name == "JSON_TYPE" and args[0].type.typed and made not in _MAKERS:
            raise unsupported("JSON_TYPE in a document with decimals, dates or times")
    found = simple_call(name, args, item_text(node, scope) if SCALARS[name].quoted else "")
    if name == "FIND_IN_SET" and is_constant(node.expressions[0]) and args[1].type.members:
        members = text_constant(",".join(args[1].type.members))
        place = simple_call(name, [args[0], members])  # among the words of the column
        return replace(found, sql=f"(CASE WHEN {found.sql} THEN {place.sql} ELSE {found.sql} END)")
    return found


_OF_DOCUMENTS = {name for name in SCALARS if name.startswith("JSON_")} - {"JSON_VALID"}
"""Functions whose first argument is a JSON document, or its text."""
_MAKERS = {"JSON_ARRAY", "JSON_OBJECT", "JSON_ARRAYAGG", "JSON_OBJECTAGG"}
"""Functions that make an array or an object."""


def _require_document(name: str, kind: Type) -> None:
    """Raise StatementError for a value of a type that is never a JSON document."""
    if kind.binary:
        raise unsupported(f"{name} of a byte string")
    if kind.number or kind.moment:
        raise mysql_error(3064 if name == "JSON_UNQUOTE" else 3146, 1, name.lower())


def _on_this_day(value: Expression, name: str, position: int, scope: Scope) -> Expression:
    """Return an argument that must be a date. A time is one of the current day."""
    parameters = SCALARS[name].arguments
    wanted = parameters[min(position, len(parameters) - 1)].kind
    if value.type.kind != "time" or wanted not in ("moment", "parts"):
        return value
    return time_of_this_day(value, scope)


_NUMBER_TEXTS = frozenset({"BIN", "OCT", "CONV"})
"""Functions that read a number from a text."""


def simple_call(name: str, args: list[Expression], text: str = "") -> Expression:
    """Compile a call of a registered scalar function. ``text`` is that of the call.

    Raises StatementError 1582 for a wrong number of arguments and 1241 for a row as an argument.
    """
    if name == "FROM_UNIXTIME" and len(args) == 2:
        return simple_call("DATE_FORMAT", [simple_call(name, args[:1]), args[1]])
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
    if name in _OF_SIZES and arguments[1 % len(args)].type.wrapped:
        size = arguments[1 % len(args)]
        arguments[1 % len(args)] = replace(
            size, sql=f"(CASE WHEN {size.sql} < 0 THEN {_MAX_INT} ELSE {size.sql} END)"
        )
    if name == "FORMAT" and arguments[0].type.kind in ("double", "float"):  # halves to even
        number, digits = arguments[0], arguments[1].sql
        arguments[0] = replace(number, sql=f"mysql_round({number.sql}, MAX({digits}, 0), 0)")
    result = function.returns
    texts = [m.type for m, p in zip(arguments, parameters, strict=True) if p.kind == "text"]
    if len(texts) > 1 and any(t.binary for t in texts):
        kind = concatenation_type(*texts)
        arguments = [
            as_bytes(m) if kind.binary and m.type.charset else as_characters(m, kind)
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
    if name == "ELT":
        words = " ".join(f"WHEN {n} THEN {word}" for n, word in enumerate(parts[1:], 1))
        sql = f"(CASE {function.sqlite_name}({parts[0]}) {words} END)"
    if result.binary and function.returns is ARGUMENT_TEXT:
        sql = f"CAST({sql} AS BLOB)"
    if name in _OF_SECONDS:
        result = replace(result, scale=_fraction_digits(args[-1].type))
    if name in ("DATE_FORMAT", "TIME_FORMAT"):
        result = replace(result, plain=_format_level(arguments[1]))
    if name == "TIME":
        result = replace(result, scale=_clock_digits(args[0]))
    if name == "TIMESTAMP":
        result = replace(result, scale=max(a.type.moment * (a.type.scale or 0) for a in args))
    if result.kind == "json":
        result = document_type(*(a.type for a in args if a.type.typed), returned=result)
    aggregate = any(a.aggregate for a in args)
    return Expression(sql, replace(result, nullable=True), aggregate=aggregate)


_MAX_INT = (1 << 63) - 1
_OF_SIZES = frozenset({"LEFT", "LPAD", "REPEAT", "RIGHT", "RPAD", "SPACE"})
"""Functions of a number of characters, which is their second argument, or the only one."""
_LOGARITHMS = frozenset({"LN", "LOG", "LOG2", "LOG10"})
_OF_SECONDS = frozenset({"SEC_TO_TIME", "MAKETIME", "FROM_UNIXTIME"})
"""Functions whose result has the fraction of their last argument."""


def _format_level(pattern: Expression) -> int:
    """Return the ``Type.plain`` of the texts that a format gives."""
    if not isinstance(pattern.literal, str):
        return 0
    shape = re.sub("%(.)", lambda m: ":" if m[1] in "rT" else m[1], pattern.literal)
    return value_constant(shape).type.plain


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
    if parameter.kind in ("moment", "parts"):
        return as_moment_text(value, "parts" if parameter.kind == "parts" else "datetime")
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
    context = node.this.name.upper().removeprefix("SQL_TSI_")
    this = compile_expression(node.expression, scope)
    this = this if unit_has_time(context) else time_of_this_day(this, scope)
    text = as_clock_text(this) if unit_has_time(context) else as_moment_text(this)
    return Expression(f"mysql_extract('{context}', {text.sql})", INT)


@compiles(
    exp.CurrentDate,
    exp.CurrentTime,
    exp.CurrentTimestamp,
    exp.Localtime,
    exp.Localtimestamp,
)
def _current_time(node: exp.Func, scope: Scope) -> Expression:
    names: dict[type[exp.Expr], str] = {
        exp.CurrentDate: "CURDATE",
        exp.CurrentTime: "CURTIME",
    }
    return current_time(names.get(type(node), "NOW"), [], scope)


@compiles(exp.CurrentUser)
def _user(node: exp.CurrentUser, scope: Scope) -> Expression:
    return session_function("USER", [], scope)


@compiles(exp.Chr)
def _chr(node: exp.Chr, scope: Scope) -> Expression:
    charset = node.args.get("charset")
    if charset:
        kind = exp.DataType(this=exp.DType.CHARACTER_SET, kind=charset)
        plain = exp.Chr(expressions=node.expressions)
        return compile_expression(exp.Cast(this=plain, to=kind), scope)
    parts = [as_integer(compile_expression(e, scope)).sql for e in node.expressions]
    return Expression(f"mysql_char({', '.join(parts)})", BYTES)


@compiles(exp.Soundex)
def _soundex(node: exp.Soundex, scope: Scope) -> Expression:
    """Compile a side of SOUNDS LIKE."""
    return simple_call("SOUNDEX", [compile_scalar(node.this, scope)])


@compiles(exp.JSONExtract, exp.JSONExtractScalar)
def _json_operator(node: exp.JSONExtract, scope: Scope) -> Expression:
    path = text_constant(node.expression.name)
    found = simple_call("JSON_EXTRACT", [compile_scalar(node.this, scope), path])
    return found if type(node) is exp.JSONExtract else simple_call("JSON_UNQUOTE", [found])
