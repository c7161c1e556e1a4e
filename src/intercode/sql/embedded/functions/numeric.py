"""Numeric functions, and the text of numbers."""

from __future__ import annotations

import math
import random
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from typing import Any

from intercode.sql.embedded.catalog.types import ASCII_STRING, DOUBLE, INT
from intercode.sql.embedded.catalog.values import leading_number
from intercode.sql.embedded.functions.registry import (
    NUMBER,
    NUMBER_OR_TEXT,
    OPTIONAL_NUMBER,
    OPTIONAL_TEXT,
    TEXT,
    internal,
    scalar,
)

_64_BITS = 0xFFFFFFFFFFFFFFFF


def to_decimal(value: float | int) -> Decimal:
    """Return the shortest decimal that reads back as this REAL."""
    return Decimal(repr(value))


# ---------------------------------------------------------------- rounding
@internal("round")
def round_number(value: float, digits: int, exact: int) -> float:
    """ROUND. Exact numbers round half away from zero, doubles half to even as C's rint does."""
    digits = max(-30, min(30, int(digits)))
    if exact:
        return float(to_decimal(value).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP))
    power = 10.0 ** abs(digits)
    scaled = value / power if digits < 0 else value * power
    if not math.isfinite(scaled):
        return value
    whole = float(round(scaled))
    return whole * power if digits < 0 else whole / power


@internal("truncate")
def truncate(value: float, digits: int, exact: int) -> float:
    """TRUNCATE: round toward zero."""
    digits = max(-30, min(30, int(digits)))
    return float(to_decimal(value).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_DOWN))


@internal("floor")
def floor(value: float) -> int:
    return math.floor(value)


@internal("ceiling")
def ceiling(value: float) -> int:
    return math.ceil(value)


@internal("decimal")
def cast_decimal(value: Any, scale: int, limit: int) -> float:
    """CAST AS DECIMAL: round to ``scale`` digits and clip to what the type can hold."""
    found = to_decimal(value).quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP)
    largest = Decimal(limit) - Decimal(1).scaleb(-scale)
    return float(max(-largest, min(largest, found)))


# ---------------------------------------------------------------- text of numbers
@internal("number_text")
def number_text(value: Any, scale: int, is_float: int, exact: int) -> str:
    """Return a number as text: a decimal with its scale, a double with the digits it needs."""
    if exact:
        return str(to_decimal(value).quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP))
    if scale >= 0:
        return f"{value:.{scale}f}"
    return double_text(float(f"{value:.6g}") if is_float else float(value))


def double_text(value: float) -> str:
    """Return a double as MySQL writes it."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    text = repr(value)
    if "e" not in text:
        return text
    mantissa, _, power = text.partition("e")
    return f"{mantissa.removesuffix('.0')}e{int(power)}"


@internal("number")
def text_number(value: Any) -> float:
    """Return the number that a string or a byte string begins with."""
    text = value if isinstance(value, str) else bytes(value).decode("utf-8", "replace")
    return leading_number(text)


@scalar("FORMAT", args=[NUMBER, NUMBER, OPTIONAL_TEXT], returns=ASCII_STRING)
def format_number(value: float, digits: float, *_: Any) -> str:
    """Return a number with commas between the thousands. The locale has no effect."""
    digits = max(0, min(30, int(digits)))
    exact = to_decimal(value).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)
    return f"{exact:,}"


@scalar("CONV", args=[TEXT, NUMBER, NUMBER], returns=ASCII_STRING)
def conv(text: str, source: float, target: float) -> str | None:
    """Convert a number between the bases 2 to 36."""
    low, high = int(source), int(target)
    if not (2 <= abs(low) <= 36 and 2 <= abs(high) <= 36):
        return None
    digits = ""
    for char in text.strip().lower():
        if not char.isalnum() or int(char, 36) >= abs(low):
            break
        digits += char
    value = int(digits or "0", abs(low))
    out = ""
    while value:
        value, rest = divmod(value, abs(high))
        out = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[rest] + out
    return out or "0"


@scalar("HEX", args=[NUMBER_OR_TEXT], returns=ASCII_STRING)
def hex_text(value: Any) -> str:
    if isinstance(value, (int, float)):
        return f"{int(value) & _64_BITS:X}"
    return (value if isinstance(value, bytes) else value.encode()).hex().upper()


@scalar("BIN", args=[NUMBER], returns=ASCII_STRING)
def bin_text(value: float) -> str:
    return f"{int(value) & _64_BITS:b}"


@scalar("OCT", args=[NUMBER], returns=ASCII_STRING)
def oct_text(value: float) -> str:
    return f"{int(value) & _64_BITS:o}"


# ---------------------------------------------------------------- arithmetic
@internal("mod")
def mod(a: float, b: float) -> float | None:
    return math.fmod(a, b) if b else None


@scalar("SIGN", args=[NUMBER], returns=INT)
def sign(value: float) -> int:
    return (value > 0) - (value < 0)


@scalar("BIT_COUNT", args=[NUMBER], returns=INT)
def bit_count(value: float) -> int:
    return int(value).bit_count()


@scalar("SQRT", args=[NUMBER], returns=DOUBLE)
def sqrt(value: float) -> float | None:
    return math.sqrt(value) if value >= 0 else None


@scalar("POW", "POWER", args=[NUMBER, NUMBER], returns=DOUBLE)
def power(base: float, exponent: float) -> Any:
    return float(base) ** float(exponent)


@scalar("EXP", args=[NUMBER], returns=DOUBLE)
def exp(value: float) -> float:
    return math.exp(value)


@scalar("LN", args=[NUMBER], returns=DOUBLE)
def ln(value: float) -> float | None:
    return math.log(value) if value > 0 else None


@scalar("LOG", args=[NUMBER, OPTIONAL_NUMBER], returns=DOUBLE)
def log(*args: float) -> float | None:
    """LOG(x) or LOG(base, x)."""
    if min(args) <= 0:
        return None
    return math.log(args[0]) if len(args) == 1 else math.log(args[1]) / math.log(args[0])


@scalar("LOG2", args=[NUMBER], returns=DOUBLE)
def log2(value: float) -> float | None:
    return math.log2(value) if value > 0 else None


@scalar("LOG10", args=[NUMBER], returns=DOUBLE)
def log10(value: float) -> float | None:
    return math.log10(value) if value > 0 else None


# ---------------------------------------------------------------- trigonometry
@scalar("SIN", args=[NUMBER], returns=DOUBLE)
def sin(value: float) -> float:
    return math.sin(value)


@scalar("COS", args=[NUMBER], returns=DOUBLE)
def cos(value: float) -> float:
    return math.cos(value)


@scalar("TAN", args=[NUMBER], returns=DOUBLE)
def tan(value: float) -> float:
    return math.tan(value)


@scalar("COT", args=[NUMBER], returns=DOUBLE)
def cot(value: float) -> float:
    return 1 / math.tan(value)


@scalar("ASIN", args=[NUMBER], returns=DOUBLE)
def asin(value: float) -> float:
    return math.asin(value)


@scalar("ACOS", args=[NUMBER], returns=DOUBLE)
def acos(value: float) -> float:
    return math.acos(value)


@scalar("ATAN", args=[NUMBER, OPTIONAL_NUMBER], returns=DOUBLE)
@scalar("ATAN2", args=[NUMBER, NUMBER], returns=DOUBLE, sqlite_name="atan2")
def atan(*args: float) -> float:
    return math.atan(args[0]) if len(args) == 1 else math.atan2(*args)


@scalar("DEGREES", args=[NUMBER], returns=DOUBLE)
def degrees(value: float) -> float:
    return math.degrees(value)


@scalar("RADIANS", args=[NUMBER], returns=DOUBLE)
def radians(value: float) -> float:
    return math.radians(value)


@internal("rand", accepts_null=True, deterministic=False)
def rand(seed: int | None) -> float:
    """RAND. With a seed, every row gets the same number; in MySQL only the first row does."""
    return random.random() if seed is None else random.Random(seed).random()
