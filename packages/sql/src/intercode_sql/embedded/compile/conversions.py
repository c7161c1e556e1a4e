"""Compiles constants, conversions between types, and CAST."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

from sqlglot import exp

from intercode_sql.dialect.errors import mysql_error, unsupported
from intercode_sql.embedded.catalog.collations import collate_clause, nocase_level
from intercode_sql.embedded.catalog.moments import read_moment, read_time, time_text
from intercode_sql.embedded.catalog.types import (
    ASCII_STRING,
    BYTES,
    DOUBLE,
    INT,
    JSON_COLUMN,
    NULL,
    STRING,
    TEMPORAL_KINDS,
    Type,
    concatenation_type,
    decimal,
)
from intercode_sql.embedded.catalog.values import MAX_DOUBLE, is_number, leading_number
from intercode_sql.embedded.compile.model import Expression, Scope, compile_scalar
from intercode_sql.embedded.compile.strict_values import (
    cast_to_decimal,
    checks_conversions,
    cut_bytes,
    cut_text,
    number_moment,
    whole_moment,
    whole_number,
)
from intercode_sql.embedded.functions.strings import as_characters as characters_of_bytes
from intercode_sql.literals import SQLITE_LITERALS

NULL_EXPRESSION = Expression("NULL", NULL)
CAN_FAIL = re.compile(
    r"mysql_(?:in_range|div|pow|exp|cot|json_\w+|whole_\w+|divisor|moved_date|parsed_date)\("
)
"""Matches the SQL of values that can be errors, which MySQL computes only where they are needed."""
quote_text = SQLITE_LITERALS.text


def text_constant(value: str) -> Expression:
    """Compile a string constant."""
    plain = min(nocase_level(value, "general"), nocase_level(value, "uca"))
    kind = Type("string", len(value), plain=plain, nullable=False)
    return Expression(quote_text(value), kind, literal=value)


def bytes_constant(value: bytes, charset: str) -> Expression:
    """Compile constant bytes of a character set. They are a text, also where a number is needed.
    Raises StatementError 1300 for bytes that are no characters."""
    if charset == "binary":
        kind = replace(BYTES, nullable=False, precision=len(value))
        return Expression(SQLITE_LITERALS.blob(value), kind)
    if charset not in _CHARSETS:
        raise unsupported(f"the character set {charset}")
    found = text_constant(characters_of_bytes(value, charset, 1))
    if charset != "latin1":
        return found
    return replace(found, type=replace(found.type, charset="latin1", collation="swedish", plain=0))


_CHARSETS = frozenset({"utf8mb4", "utf8mb3", "utf8", "latin1", "ascii"})


def number_constant(text: str) -> Expression:
    """Compile a number literal. Raises StatementError for one that SQLite cannot hold."""
    low = text.lower()
    if "e" in low:
        return Expression(repr(float(low)), replace(DOUBLE, nullable=False), literal=float(low))
    if "." in low:
        whole, _, part = low.partition(".")
        digits = len(whole) + len(part)
        if float(low) > MAX_DOUBLE:
            raise unsupported(f"a decimal of {digits} digits")
        if len((whole + part).lstrip("0")) > 15:
            shown = Decimal(repr(float(low)))
            if shown != Decimal(low) and len(shown.normalize().as_tuple().digits) <= 15:
                raise unsupported(f"the exact decimal {text}, which has more than 15 digits")
            return Expression(repr(float(low)), replace(decimal(digits, len(part)), nullable=False))
        kind = replace(decimal(digits, len(part)), nullable=False)
        return Expression(repr(float(low)), kind, literal=float(low))
    value = int(low)
    if value >= 1 << 63:
        raise unsupported(f"the whole number {text}, which needs more than 63 bits")
    kind = Type("int", len(low.lstrip("0") or "0"), nullable=False)
    return Expression(str(value), kind, literal=value)


def value_constant(value: Any) -> Expression:
    """Compile the value of a variable or a setting as a constant."""
    if value is None:
        return NULL_EXPRESSION
    if isinstance(value, float):
        return Expression(repr(value), replace(DOUBLE, nullable=False), literal=value)
    if isinstance(value, (int, Decimal)):
        constant = number_constant(str(abs(value)))
        if value >= 0:
            return constant
        literal = value if isinstance(value, int) else float(value)
        return Expression(f"(-{constant.sql})", constant.type, literal=literal)
    if isinstance(value, bytes):
        return Expression(f"X'{value.hex()}'", BYTES)
    return text_constant(str(value))


def as_number(ex: Expression) -> Expression:
    """Convert a value to a number: strings become doubles, dates integers."""
    kind = ex.type
    if kind.bits:
        return replace(ex, type=replace(kind, bits=0))
    if kind.wrapped:
        sql = f"mysql_unwrapped({ex.sql})"
        return Expression(sql, replace(kind, wrapped=False), aggregate=ex.aggregate)
    if kind.number or kind.kind == "null":
        return ex
    if ex.number:
        return Expression(ex.number, DOUBLE, aggregate=ex.aggregate)
    if kind.moment:
        if kind.kind == "datetime" and kind.scale:
            raise unsupported("a date and time with fractions of seconds as a number")
        digits, scale = {"date": 8, "time": 7}.get(kind.kind, 14), kind.scale or 0
        target = decimal(digits + scale, scale) if scale else replace(INT, precision=digits)
        target = replace(target, nullable=kind.nullable)
        return Expression(f"mysql_temporal_number({ex.sql})", target)
    if isinstance(ex.literal, str) and (is_number(ex.literal) or not checks_conversions()):
        value = leading_number(ex.literal)
        return Expression(repr(value), replace(DOUBLE, nullable=False), literal=value)
    if kind.ranked:
        digits = 20 if kind.members else 5
        return Expression(enum_index(ex), replace(INT, precision=digits, nullable=kind.nullable))
    if kind.dated:
        return Expression(f"mysql_temporal_number({ex.sql})", DOUBLE, aggregate=ex.aggregate)
    if kind.kind == "string":
        text = whole_number(ex.sql, "DOUBLE")
        return Expression(f"CAST({text} AS REAL)", replace(DOUBLE, nullable=kind.nullable))
    if kind.binary and isinstance(ex.literal, bytes):
        number = number_constant(str(int.from_bytes(ex.literal, "big")))
        return replace(number, type=replace(number.type, unsigned=True))
    return Expression(f"mysql_number({whole_number(ex.sql, 'DOUBLE')})", DOUBLE)


def as_compared_number(ex: Expression) -> Expression:
    """Convert a value to a number for a comparison with one, which is one of doubles."""
    if ex.type.kind == "datetime" and ex.type.scale:
        return Expression(f"mysql_temporal_number({ex.sql})", DOUBLE, aggregate=ex.aggregate)
    return as_number(ex)


def as_integer(ex: Expression) -> Expression:
    """Convert a value to a whole number: numbers are rounded, strings are cut."""
    kind = ex.type
    if kind.kind in ("int", "year", "null"):
        return ex
    if isinstance(ex.literal, float):
        size = abs(ex.literal)
        size = round(size) if kind.kind == "double" else math.floor(size + 0.5)
        size = min(size, (1 << 63) - 1)
        return value_constant(-size if ex.literal < 0 else size)
    plain = kind.kind == "string" and not kind.ranked and not kind.dated
    if (plain or (kind.binary and ex.literal is None)) and not ex.number:
        text = whole_number(ex.sql, "INTEGER")
        return Expression(f"CAST({text} AS INTEGER)", replace(INT, nullable=kind.nullable))
    if kind.kind == "datetime" and kind.scale:
        sql = f"mysql_temporal_number(mysql_rounded({ex.sql}, 0))"
        return Expression(sql, replace(INT, nullable=kind.nullable), aggregate=ex.aggregate)
    number = as_number(ex)
    exact = int(number.type.kind in ("int", "decimal"))
    sql = f"mysql_int({number.sql}, {exact})"
    return Expression(sql, replace(INT, nullable=kind.nullable), aggregate=ex.aggregate)


def enum_index(ex: Expression) -> str:
    """Return SQLite's SQL for the position of an ENUM's word, 0 for the empty word, or for the
    number of a SET."""
    if ex.type.members:
        return f"mysql_set_number({ex.sql}, {quote_text(','.join(ex.type.members))})"
    tests = " ".join(f"WHEN {quote_text(w)} THEN {i}" for i, w in enumerate(ex.type.words, 1))
    return f"(CASE {ex.sql} {tests} WHEN {ex.sql} THEN 0 END)"


def truth_sql(ex: Expression) -> str:
    """Return the SQL of a value whose truth is needed."""
    if ex.type.kind in ("date", "datetime"):
        zero = "0000-00-00" if ex.type.kind == "date" else "0000-00-00 00:00:00"
        return f"({ex.sql} <> '{zero}')"
    return as_number(ex).sql if not ex.type.number else ex.sql


def compile_condition(node: exp.Expr, scope: Scope) -> str:
    """Compile an expression whose truth is needed."""
    return truth_sql(compile_scalar(node, scope))


def sort_expression(ex: Expression) -> str:
    """Return the expression to sort a value by. An ENUM is sorted by the position of its word, a
    SET by its number."""
    if ex.type.ranked:
        return enum_index(ex)
    if isinstance(ex.literal, int):  # SQLite would take it for the position of a column
        return f"({ex.sql} + 0)"
    if ex.type.kind == "time":
        return compared_time(ex)
    return as_number(ex).sql if ex.type.wrapped else grouped_sql(ex, True)


def grouped_sql(ex: Expression, ordered: bool = False) -> str:
    """Return the expression by which rows are grouped."""
    return as_column(ex).sql + collate_clause(ordered, ex.type)


def as_column(ex: Expression) -> Expression:
    """Return a value as a column of a result holds it: a quotient has the digits of its type."""
    if ex.type.kind == "decimal" and ex.sql.startswith("mysql_quotient("):
        return replace(ex, sql=f"({ex.sql[:-1]}, {ex.type.scale}))")  # brackets: of a column once
    return ex


def require_rounded(ex: Expression, kind: Type) -> None:
    """Raise StatementError for a decimal that becomes a column of texts with digits that its type
    has not: those of a quotient, or of a time."""
    made = "mysql_quotient(" in ex.sql or "mysql_temporal_number(" in ex.sql
    if kind.text and ex.type.kind == "decimal" and made:
        raise unsupported("a quotient of exact numbers in a column of texts")


def compared_time(ex: Expression) -> str:
    """Return the SQL by which a time is compared. As texts, times below zero and from 100 hours
    have another order; columns and most constants have none of them."""
    return ex.sql if _SHORT_TIME.match(ex.sql) else f"mysql_time_order({ex.sql})"


_SHORT_TIME = re.compile(r"""'\d\d:[\d:.]*'$|\w+\.(\w+|"[^"]*")$""")


def as_bytes(ex: Expression) -> Expression:
    """Convert a value to a byte string."""
    if ex.type.binary or ex.type.kind == "null":
        return ex
    kind = replace(BYTES, nullable=ex.type.nullable)
    if ex.type.charset == "latin1":
        return Expression(f"mysql_latin1({ex.sql})", kind)
    return Expression(f"CAST({as_text(ex).sql} AS BLOB)", kind)


def as_text(ex: Expression) -> Expression:
    """Convert a value to a string. A byte string stays one."""
    kind = ex.type
    if kind.ranked:
        plain = replace(kind, words=(), members=())
        return Expression(ex.sql, plain, aggregate=ex.aggregate, outer=ex.outer)
    if kind.binary:
        return ex
    if kind.bits:
        size = -(-kind.bits // 8)
        made = replace(BYTES, precision=size, nullable=kind.nullable, strong=True)
        return Expression(f"mysql_bit_bytes({ex.sql}, {size})", made, aggregate=ex.aggregate)
    if kind.wrapped:
        return Expression(f"mysql_unsigned_text({ex.sql})", replace(STRING, precision=20, plain=2))
    if kind.kind in ("string", "json", "null") or kind.moment:
        if kind.kind in ("string", "null"):
            return ex
        if kind.kind == "json":
            return replace(ex, type=replace(JSON_COLUMN, nullable=kind.nullable))
        sql = f"mysql_moment_text({ex.sql}, {kind.scale})" if kind.moment and kind.scale else ex.sql
        return Expression(sql, replace(STRING, precision=kind.size, plain=kind.text_level))
    if kind.kind in ("int", "year"):
        return Expression(f"CAST({ex.sql} AS TEXT)", replace(STRING, precision=20, plain=2))
    total = kind.kind == "double" and ex.sql.startswith("SUM(")  # has all digits in MySQL 8
    scale = -1 if total or kind.scale is None else kind.scale
    small = int(kind.kind == "float")
    exact = int(kind.kind == "decimal")
    sql = f"mysql_number_text({ex.sql}, {scale}, {small}, {exact})"
    size = kind.precision + 2 * exact  # with a sign and a point
    return Expression(sql, replace(STRING, precision=size, plain=kind.text_level))


def as_characters(ex: Expression, kind: Type) -> Expression:
    """Convert bytes to a string of the character set of ``kind``, unless that is bytes too."""
    if not ex.type.binary or kind.binary:
        return ex
    name = kind.charset or "utf8mb4"
    if isinstance(ex.literal, bytes):
        characters_of_bytes(ex.literal, name, 1)  # is an error even if no row is read
    constant = int(not (ex.type.nullable or ex.type.strong))
    sql = f"mysql_characters({ex.sql}, '{name}', {constant})"
    return Expression(sql, replace(kind, words=(), plain=0))


def as_texts(values: list[Expression]) -> tuple[list[Expression], Type]:
    """Convert values to strings of one character set, or to byte strings. Return their type."""
    texts = [as_text(value) for value in values]
    kind = concatenation_type(*(text.type for text in texts))
    return [as_characters(text, kind) for text in texts], kind


def as_moment_text(ex: Expression, kind: str = "datetime") -> Expression:
    """Convert a value to the text of a date, or of ``parts``, which can be zeros."""
    if ex.type.kind == "time":
        raise unsupported("a date from a time: the current day")
    if _has_digits(ex.type):
        sql = as_number(ex).sql
        return Expression(number_moment(sql, "", ex.type.scale or 0), ASCII_STRING)
    if ex.type.moment:
        return ex
    text = as_text(ex)
    return replace(text, sql=whole_moment(text.sql, kind))


def _has_digits(kind: Type) -> bool:
    """Return whether the digits of a value are a date or a time. Those of a BIT are its bytes."""
    return kind.number and not kind.bits


def on_this_day(values: list[Expression], scope: Scope) -> list[Expression]:
    """Convert the times among dates to times of the day at which the statement began."""
    kinds = {v.type.kind for v in values} - {"null"}
    if "time" not in kinds or len(kinds) == 1 or not kinds <= TEMPORAL_KINDS:
        return values
    return [time_of_this_day(v, scope) for v in values]


def time_of_this_day(ex: Expression, scope: Scope) -> Expression:
    """Convert a time to the date and time of the day at which the statement began. Other values are
    unchanged."""
    if ex.type.kind != "time":
        return ex
    scope.context.volatile = True
    sql = f"mysql_datetime('{scope.context.now[:10]}', {ex.sql})"
    return Expression(sql, Type("datetime", 19, ex.type.scale), aggregate=ex.aggregate)


def as_clock_text(ex: Expression) -> Expression:
    """Convert a value to the text of a time or of a date and time."""
    if ex.type.kind == "date":
        return Expression(f"({ex.sql} || ' 00:00:00')", replace(STRING, plain=1))
    if _has_digits(ex.type):
        number = as_column(as_number(ex)).sql
        checked = "whole_" if checks_conversions() else ""
        return Expression(f"mysql_{checked}number_clock({number})", replace(STRING, plain=1))
    if ex.type.moment:
        return ex
    if ex.type.dated:
        return replace(ex, sql=f"COALESCE(mysql_datetime({ex.sql}), {ex.sql})")
    text = as_text(ex)
    return replace(text, sql=whole_moment(text.sql, "time"))


def as_temporal(ex: Expression, kind: str, strict: bool = True) -> Expression:
    """Convert a value to a date, a datetime or a time.

    If ``strict``, as in a comparison, raises StatementError 1525 for a constant that is not one.
    """
    if ex.type.kind == kind or ex.type.kind == "null":
        return ex
    target = Type(kind, 10 if kind != "datetime" else 19, 0)  # type: ignore[arg-type]
    if ex.type.kind == "time":
        as_moment_text(ex)
    if ex.type.moment:
        target = replace(target, scale=ex.type.scale if kind != "date" else 0)
    if ex.type.kind == "date" and kind == "datetime":
        return Expression(f"({ex.sql} || ' 00:00:00')", target)
    if isinstance(ex.literal, str) or (isinstance(ex.literal, int) and strict):
        return _temporal_constant(str(ex.literal), kind, target, strict)
    if ex.type.kind == "datetime" and kind == "date":
        return Expression(f"SUBSTR({ex.sql}, 1, 10)", target)
    if _has_digits(ex.type) and kind != "time" and not strict:
        return Expression(number_moment(as_number(ex).sql, kind, ex.type.scale or 0), target)
    if kind == "time":
        text = as_clock_text(ex)
    else:
        text = as_text(ex) if ex.type.number else as_moment_text(ex)
    if strict and not ex.type.moment:  # in a comparison, what is no date is before all dates
        return Expression(f"mysql_compared_moment({text.sql}, '{kind}')", target)
    return Expression(f"mysql_{kind}({text.sql})", target)


def _temporal_constant(value: str, kind: str, target: Type, strict: bool) -> Expression:
    text = None
    if kind == "time":
        found = read_time(value)
        text = time_text(found[0]) if found is not None and (found[1] or not strict) else None
    else:
        moment = read_moment(value)
        if moment is not None and (moment.clean or not strict):
            text = moment.date if kind == "date" else moment.text
    if text is not None:
        fraction = re.search(r"\.(\d+)", value) if "." in text else None
        scale = min(6, len(fraction[1])) if fraction else 0
        target = replace(target, scale=scale, nullable=False)
        return Expression(quote_text(text), target)
    if strict:
        raise mysql_error(1525, kind.upper(), value)
    return Expression(
        whole_moment(quote_text(value), kind) if checks_conversions() else "NULL", target
    )


def convert_to(ex: Expression, kind: Type) -> Expression:
    """Convert a value to ``kind``, the type of the CASE, COALESCE or UNION that contains it."""
    if ex.type.kind == "null" or ex.type.kind == kind.kind:
        if ex.type.wrapped and not kind.wrapped:
            return as_number(ex)
        return as_text(ex) if ex.type.ranked and not kind.ranked else ex
    if kind.kind == "string":
        return as_characters(as_text(ex), kind)
    if ex.type.wrapped and kind.number:
        return as_number(ex)
    if kind.binary:
        return as_bytes(ex)
    if kind.number and not ex.type.number:
        return as_number(ex)
    if kind.moment:
        return as_temporal(ex, kind.kind, strict=False)
    return ex


def chosen_sql(ex: Expression, kind: Type) -> str:
    """Return the SQL of a value of a CASE or COALESCE of the type ``kind``. Constant bytes beside
    latin1 are sent as they are, and the client reads them; a text beside bytes is sent as UTF-8."""
    if kind.charset and ex.type.binary:
        return f"mysql_sent_bytes({ex.sql})"
    if kind.binary and ex.type.charset:
        return f"CAST({as_text(ex).sql} AS BLOB)"
    return convert_to(ex, kind).sql


# ---------------------------------------------------------------- CAST
def compile_cast(ex: Expression, node: exp.Cast) -> Expression:
    """Compile CAST or CONVERT of a value. Raises StatementError for an unsupported type."""
    kind: Any = node.args["to"]
    name = kind.this.name if hasattr(kind.this, "name") else str(kind.this)
    sizes = [int(p.name) for p in kind.expressions if p.name.isdigit()]
    if name in ("BIGINT", "UBIGINT", "INT", "UINT"):
        return _cast_to_integer(ex, name.startswith("U"))
    if name in ("DECIMAL", "UDECIMAL"):
        precision, scale = (sizes + [10, 0][len(sizes) :])[:2]
        limit = 10 ** (precision - scale)
        sql = f"{cast_to_decimal()}({as_number(ex).sql}, {scale}, {limit})"
        return Expression(sql, decimal(precision, scale))
    if name in ("DOUBLE", "FLOAT"):
        target = (
            DOUBLE
            if name == "DOUBLE" or (sizes and sizes[0] > 24)
            else replace(DOUBLE, kind="float")
        )
        return Expression(f"CAST({as_number(ex).sql} AS REAL)", target)
    if name == "CHARACTER_SET" and (charset := kind.args["kind"].name.lower()) not in _UNICODE:
        return _in_charset(as_text(ex), charset)
    if name in ("CHAR", "VARCHAR", "NCHAR", "NVARCHAR", "TEXT", "CHARACTER_SET"):
        converted = as_text(ex)
        if converted.type.kind == "null":
            converted = replace(converted, type=STRING)
        if converted.type.binary:
            converted = Expression(f"mysql_text({converted.sql})", STRING)
        elif converted.type.collation == "bin" or converted.type.charset:
            kind = replace(converted.type, collation="uca", charset="", plain=0, strong=False)
            converted = Expression(converted.sql, kind)
        if sizes:
            cut = cut_text(converted.sql, sizes[0])
            converted = Expression(cut, replace(converted.type, precision=sizes[0]))
        return replace(converted, type=replace(converted.type, strong=True))
    if name in ("BINARY", "VARBINARY"):
        converted = replace(as_bytes(ex), literal=None)
        size = converted.type.precision or 4 * ex.type.precision
        converted = replace(converted, type=replace(BYTES, precision=size))
        if sizes:
            sql = cut_bytes(converted.sql, sizes[0], name == "BINARY")
            converted = Expression(sql, replace(converted.type, precision=sizes[0]))
        return replace(converted, type=replace(converted.type, strong=True, fixed=False))
    return _cast_to_temporal(ex, name, sizes)


_UNICODE = frozenset({"utf8mb4", "utf8mb3", "utf8"})


def _in_charset(text: Expression, charset: str) -> Expression:
    """Compile CONVERT(text USING latin1 or ascii): other characters become question marks."""
    if charset not in ("latin1", "ascii"):
        raise unsupported(f"the character set {charset}")
    sql = f"mysql_in_charset({text.sql}, '{charset}')"
    kind = replace(STRING, precision=text.type.precision, strong=True)
    if charset == "latin1":
        kind = replace(kind, charset=charset, collation="swedish", plain=0)
    return Expression(sql, kind)


def _cast_to_integer(ex: Expression, unsigned: bool) -> Expression:
    kind = ex.type.as_stored()
    positive = kind.unsigned or (isinstance(ex.literal, (int, float)) and ex.literal >= 0)
    wrapped = unsigned and (kind.wrapped or not positive)
    if kind.kind == "int":
        made = replace(kind, unsigned=unsigned, precision=20, wrapped=wrapped, bits=0)
        return Expression(ex.sql, made)
    sql = as_integer(replace(ex, type=kind)).sql
    if unsigned and kind.kind == "decimal":
        sql, wrapped = f"MAX({sql}, 0)", False
    kind = replace(INT, unsigned=unsigned, nullable=kind.nullable, wrapped=wrapped)
    return Expression(sql, kind)


def year_sql(number: str) -> str:
    """Return the SQL of the year that an integer stands for, NULL for one that is none."""
    return (
        f"(CASE WHEN {number} BETWEEN 1 AND 69 THEN {number} + 2000 "
        f"WHEN {number} BETWEEN 70 AND 99 THEN {number} + 1900 "
        f"WHEN {number} = 0 OR {number} BETWEEN 1901 AND 2155 THEN {number} END)"
    )


_MOMENT_TYPES = {
    "DATE": "date",
    "DATETIME": "datetime",
    "TIMESTAMP": "datetime",
    "TIMESTAMPTZ": "datetime",
    "TIMESTAMPNTZ": "datetime",
    "TIME": "time",
}
"""sqlglot's names of the types of dates and times."""


MOMENTS_OF_DAYS = frozenset(name for name, kind in _MOMENT_TYPES.items() if kind != "time")


def _cast_to_temporal(ex: Expression, name: str, sizes: list[int]) -> Expression:
    if name in _MOMENT_TYPES:
        kind = _MOMENT_TYPES[name]
        literal = name.startswith("TIMESTAMP")  # TIMESTAMP '2020-06-15 12:30:45.5'
        found = as_temporal(ex, kind, strict=literal)
        digits = sizes[0] if sizes else literal * (found.type.scale or 0)
        target = replace(found.type, scale=digits)
        if kind == "date" or (found.type.scale == 0 and ex.type.moment):
            return Expression(found.sql, target)
        return Expression(f"mysql_rounded({found.sql}, {digits})", target.as_nullable())
    if name == "YEAR":
        if ex.type.kind == "time":
            raise unsupported("a date from a time: the current day")
        dated = ex.type.kind in ("date", "datetime")
        number = f"CAST(SUBSTR({ex.sql}, 1, 4) AS INTEGER)" if dated else as_integer(ex).sql
        return Expression(year_sql(number), replace(INT, kind="year", precision=4))
    raise unsupported(f"CAST to {name}")
