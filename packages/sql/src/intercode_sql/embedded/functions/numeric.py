"""Numeric functions, and the text of numbers."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from typing import Any

from intercode_sql.dialect.errors import mysql_error, unsupported
from intercode_sql.embedded.catalog.types import ASCII_STRING, DOUBLE, INT, PUNCTUATED
from intercode_sql.embedded.catalog.values import (
    EXACT,
    double_text,
    fitted_double,
    leading_number,
    quantized,
)
from intercode_sql.embedded.functions.registry import (
    INTEGER,
    NUMBER,
    NUMBER_OR_TEXT,
    OPTIONAL_NUMBER,
    OPTIONAL_TEXT,
    TEXT,
    internal,
    scalar,
)
from intercode_sql.embedded.functions.runtime import THREAD_STATE

_64_BITS = 0xFFFFFFFFFFFFFFFF


def to_decimal(value: float | int) -> Decimal:
    """Return the shortest decimal that reads back as this REAL."""
    return Decimal(repr(value))


# ---------------------------------------------------------------- rounding
@internal("round")
def round_number(value: float, digits: int, exact: int) -> float:
    """ROUND. Exact numbers round half away from zero, doubles half to even as C's rint does."""
    digits = max(-30, min(30, int(digits)))
    if isinstance(value, int):
        return value if digits >= 0 else int(quantized(Decimal(value), digits, ROUND_HALF_UP))
    if exact:
        return float(quantized(to_decimal(value), digits, ROUND_HALF_UP)) + 0.0
    return _scaled(value, digits, round)


def _scaled(value: float, digits: int, to_whole: Callable[[float], int]) -> float:
    """Return a double whose digits behind a place are made whole, as C computes it."""
    power = 10.0 ** abs(digits)
    scaled = value / power if digits < 0 else value * power
    if not math.isfinite(scaled):
        return value
    whole = float(to_whole(scaled))
    return whole * power if digits < 0 else whole / power


@internal("int")
def to_integer(value: float, exact: int) -> int:
    """Round to a whole number of 64 bits: decimals half away from zero, doubles half to even."""
    if isinstance(value, int):
        return value
    size = abs(value)
    whole = math.floor(size + 0.5) if exact else round(min(size, 1e19))
    return max(-(1 << 63), min((1 << 63) - 1, int(whole) * (-1 if value < 0 else 1)))


@internal("year_held")
def year_held(number: float, double: int) -> float:
    """Return the year that a YEAR column holds for a number, or the number if it holds none:
    decimals are rounded, doubles cut."""
    if not 0 <= number < (2155 if double else 2156):
        return number
    year = math.floor(number if double else number + 0.5)
    if 0 < year < 100:
        return year + (2000 if year < 70 else 1900)
    return year if year == 0 or 1901 <= year <= 2155 else number


@internal("unwrapped")
def unwrapped(value: int) -> int:
    """Return an unsigned integer that is stored as a signed one, if it has at most 63 bits."""
    if value < 0:
        raise unsupported(f"the whole number {value + (1 << 64)}, which needs more than 63 bits")
    return value


@internal("unsigned_text")
def unsigned_text(value: int) -> str:
    return str(value & _64_BITS)


@internal("shift")
def shift(value: int, count: int, left: int) -> int:
    """Shift the 64 bits of an integer."""
    count &= 0xFFFFFFFF
    if count >= 64:
        return 0
    bits = (value & _64_BITS) << count if left else (value & _64_BITS) >> count
    return signed(bits)


def signed(bits: int) -> int:
    """Return 64 bits as SQLite holds them."""
    return ((bits & _64_BITS) ^ (1 << 63)) - (1 << 63)


@internal("in_range")
def in_range(value: Any, unsigned: int, text: str) -> Any:
    """Return the result of integer arithmetic. Raises StatementError 1690 if it does not fit."""
    if isinstance(value, float) and unsigned and 0 <= value <= 1 << 64:  # as a double
        raise unsupported(f"the whole number {value:.0f}, which needs more than 63 bits")
    if isinstance(value, float) or (unsigned and value < 0):
        raise mysql_error(1690, "BIGINT UNSIGNED" if unsigned else "BIGINT", text)
    return value


@internal("truncate")
def truncate(value: float, digits: int, exact: int) -> float:
    """TRUNCATE: round toward zero."""
    digits = max(-30, min(30, int(digits)))
    if isinstance(value, int):
        return value if digits >= 0 else int(quantized(Decimal(value), digits, ROUND_DOWN))
    if not exact:
        return _scaled(value, digits, math.trunc)
    return float(quantized(to_decimal(value), digits, ROUND_DOWN)) + 0.0


@internal("floor")
def floor(value: float) -> float:
    return _as_sqlite(math.floor(value))


@internal("ceiling")
def ceiling(value: float) -> float:
    return _as_sqlite(math.ceil(value))


def _as_sqlite(whole: int) -> float:
    """Return a whole number as SQLite holds it: beyond 64 bits, a REAL."""
    return whole if -(1 << 63) <= whole < 1 << 63 else float(whole)


@internal("decimal")
def cast_decimal(value: Any, scale: int, limit: int) -> float:
    """CAST AS DECIMAL: round to ``scale`` digits and clip to what the type can hold."""
    found = quantized(to_decimal(value), scale, ROUND_HALF_UP)
    largest = Decimal(limit) - Decimal(1).scaleb(-scale)
    return float(max(-largest, min(largest, found))) + 0.0


# ---------------------------------------------------------------- text of numbers
@internal("number_text")
def number_text(value: Any, scale: int, is_float: int, exact: int) -> str:
    """Return a number as text: a decimal with its scale, a double with the digits it needs."""
    if exact:
        found = quantized(to_decimal(value), scale, ROUND_HALF_UP)
        return f"{found if found or not value else abs(found):f}"
    if scale >= 0:  # of a large double the shortest digits, and zeros
        return f"{Decimal(repr(value)) if abs(value) >= 1e15 else value:.{scale}f}"
    return double_text(float(f"{value:.6g}") if is_float else float(value))


@internal("fitted_text")
def fitted_text(value: float, size: int) -> str:
    """Return a double as text of at most so many characters."""
    return fitted_double(value, size)


@internal("number")
def text_number(value: Any) -> float:
    """Return the number that a string or a byte string begins with."""
    text = value if isinstance(value, str) else bytes(value).decode("utf-8", "replace")
    return leading_number(text)


_ENGLISH = frozenset(
    {
        "en_us",
        "en_gb",
        "en_au",
        "en_ca",
        "en_nz",
        "en_in",
        "en_za",
        "ja_jp",
        "zh_cn",
        "zh_tw",
        "ko_kr",
        "th_th",
    }
)


@scalar("FORMAT", args=[NUMBER, INTEGER, OPTIONAL_TEXT], returns=PUNCTUATED, accepts_null=True)
def format_number(value: float | None, digits: int | None, locale: Any = "en_US") -> str | None:
    """Return a number with commas between the thousands."""
    if value is None or digits is None:
        return None
    if str(locale).lower() not in _ENGLISH and locale is not None:
        raise unsupported(f"FORMAT in the locale {locale}")
    digits = (digits + (1 << 31) & 0xFFFFFFFF) - (1 << 31)
    digits = max(0, min(30, digits))
    exact = quantized(to_decimal(value), digits, ROUND_HALF_UP)
    return f"{exact if exact else abs(exact):,f}"


@scalar("CONV", args=[TEXT, INTEGER, INTEGER], returns=ASCII_STRING)
def conv(text: str, source: float, target: float) -> str | None:
    """Convert a number between the bases 2 to 36."""
    low, high = int(source), int(target)
    if not (2 <= abs(low) <= 36 and 2 <= abs(high) <= 36):
        return None
    if not text:
        return None
    digits = ""
    stripped = text.strip(" ").lower()
    for char in stripped.lstrip("+-"):
        if not (char.isascii() and char.isalnum()) or int(char, 36) >= abs(low):
            break
        digits += char
    value = min(int(digits or "0", abs(low)), _64_BITS)
    value = -value if stripped.startswith("-") else value
    if high < 0 and (value < 0 or low < 0):
        return f"-{conv(str(-value), 10, -high)}" if value < 0 else conv(str(value), 10, -high)
    value &= _64_BITS
    out = ""
    while value:
        value, rest = divmod(value, abs(high))
        out = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[rest] + out
    return out or "0"


@scalar("HEX", args=[NUMBER_OR_TEXT], returns=ASCII_STRING, takes_bytes=True)
def hex_text(value: Any) -> str:
    if isinstance(value, float) and not -(1 << 63) < value < 1 << 64:
        return f"{_64_BITS:X}"
    if isinstance(value, (int, float)):
        return f"{to_integer(value, 1) & _64_BITS:X}"
    return (value if isinstance(value, bytes) else value.encode()).hex().upper()


@scalar("BIN", args=[TEXT], returns=ASCII_STRING)
def bin_text(text: str) -> str | None:
    return conv(text, 10, 2)


@scalar("OCT", args=[TEXT], returns=ASCII_STRING)
def oct_text(text: str) -> str | None:
    return conv(text, 10, 8)


# ---------------------------------------------------------------- arithmetic
@internal("mod")
def mod(a: float, b: float, scale: int) -> float | None:
    """Return a remainder, which has the sign of ``a``, even if it is zero. ``scale`` is that of an
    exact number, and below zero for a double. Raises StatementError for an exact number that a REAL
    does not hold."""
    if not b:
        return None
    if scale >= 0:
        if isinstance(a, float) and abs(a) >= 10 ** (15 - scale):
            raise unsupported(f"the remainder of {a}, which has more than 15 digits")
        return float(EXACT.remainder(to_decimal(a), to_decimal(b)))
    return math.fmod(a, b)


_EXACT = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply}


@internal("exact")
def exact(a: float, op: str, b: float, scale: int) -> float:
    """Return a sum or a product of exact numbers with ``scale`` digits behind the point. Raises
    StatementError for one that a REAL does not hold."""
    found = a * b if op == "*" else a + b if op == "+" else a - b
    if abs(found) < 10 ** (15 - scale):
        return round(found, scale) + 0.0
    wanted = quantized(_EXACT[op](to_decimal(a), to_decimal(b)), scale, ROUND_HALF_UP)
    if to_decimal(float(wanted)) != wanted:
        raise unsupported(f"the exact decimal {wanted}, which has more than 15 digits")
    return float(wanted)


@internal("quotient")
def quotient(a: float, b: float, digits: int, scale: int | None = None) -> float | None:
    """Divide exact numbers. The quotient is cut after so many digits of its fraction, and then
    rounded if there is a ``scale``."""
    if not b:
        return None
    if isinstance(a, int) and isinstance(b, int):
        size = abs(a) * 10**digits // abs(b)
    else:
        size = abs(int(EXACT.divide(to_decimal(a), to_decimal(b)).scaleb(digits, EXACT)))
    if scale is not None and scale < digits:
        unit = 10 ** (digits - scale)
        size, digits = (size + unit // 2) // unit, scale
        if size >= 10**15 and to_decimal(size / 10**digits) != Decimal(size).scaleb(-digits):
            raise unsupported(f"the exact quotient {size / 10**digits}, of more than 15 digits")
    return float((size if (a < 0) == (b < 0) else -size) / 10**digits)


internal("average")(quotient)


@internal("quotient_text")
def quotient_text(a: float, b: float, digits: int) -> str | None:
    """Return the text of a quotient that is stored, with more digits than its type has."""
    if not b:
        return None
    found = EXACT.divide(to_decimal(a), to_decimal(b))
    return f"{quantized(found, digits, ROUND_DOWN):f}" if found else "0"


_LEAST_DECIMAL = 1e-81
"""The least double that is not zero as a decimal."""


@internal("div")
def div(a: float, b: float, unsigned: int, text: str) -> int | None:
    """DIV. Raises StatementError 1690 if the result does not fit 64 bits, or is below zero where
    one side is unsigned."""
    if not b or abs(b) < _LEAST_DECIMAL:
        return None
    if isinstance(a, int) and isinstance(b, int):
        found = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    else:
        found = int(EXACT.divide(to_decimal(a), to_decimal(b)))
    if -(1 << 63) <= found < 1 << 63:
        return int(in_range(found, unsigned, text))
    return int(in_range(float(found), unsigned, text))


def _of_math(name: str, function: Callable[[float], float]) -> None:
    """Register a function of ``math`` under a name in SQL."""

    @scalar(name, args=[NUMBER], returns=DOUBLE)
    def call(value: float) -> float:
        return function(value)


for _name, _function in (
    ("SQRT", math.sqrt),
    ("LN", math.log),
    ("LOG10", math.log10),
    ("SIN", math.sin),
    ("COS", math.cos),
    ("TAN", math.tan),
    ("ASIN", math.asin),
    ("ACOS", math.acos),
    ("DEGREES", math.degrees),
    ("RADIANS", math.radians),
):
    _of_math(_name, _function)


@scalar("SIGN", args=[NUMBER], returns=INT)
def sign(value: float) -> int:
    return (value > 0) - (value < 0)


@scalar("BIT_COUNT", args=[INTEGER], returns=INT)
def bit_count(value: int) -> int:
    return (value & _64_BITS).bit_count()


@scalar("POW", "POWER", args=[NUMBER, NUMBER], returns=DOUBLE, quoted=True)
def power(base: float, exponent: float, text: str) -> Any:
    try:
        found = float(base) ** float(exponent)
    except (OverflowError, ZeroDivisionError):
        found = math.inf
    return _finite(found, text)


def _finite(value: Any, text: str) -> Any:
    if isinstance(value, complex) or not math.isfinite(value):
        raise mysql_error(1690, "DOUBLE", text)
    return value


@scalar("EXP", args=[NUMBER], returns=DOUBLE, quoted=True)
def exp(value: float, text: str) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return float(_finite(math.inf, text))


@internal("positive")
def positive(value: float, base: int) -> float:
    """Return the argument of a logarithm of a statement that writes. Raises StatementError 3020 if
    it is not above zero, or a base of one."""
    if value <= 0 or (base and value == 1):
        raise mysql_error(3020)
    return value


@scalar("LOG", args=[NUMBER, OPTIONAL_NUMBER], returns=DOUBLE)
def log(*args: float) -> float | None:
    """LOG(x) or LOG(base, x)."""
    if min(args) <= 0:
        return None
    return math.log(args[0]) if len(args) == 1 else math.log(args[1]) / math.log(args[0])


@scalar("LOG2", args=[NUMBER], returns=DOUBLE)
def log2(value: float) -> float | None:
    return math.log(value) / math.log(2) if value > 0 else None


# ---------------------------------------------------------------- trigonometry
@scalar("COT", args=[NUMBER], returns=DOUBLE, quoted=True)
def cot(value: float, text: str) -> float:
    tangent = math.tan(value)
    return float(_finite(1 / tangent if tangent else math.inf, text))


@scalar("ATAN", "ATAN2", args=[NUMBER, OPTIONAL_NUMBER], returns=DOUBLE)
def atan(*args: float) -> float:
    return math.atan(args[0]) if len(args) == 1 else math.atan2(*args)


@internal("rand", deterministic=False)
def rand() -> float:
    return random.random()


@internal("uuid", deterministic=False)
def uuid() -> str:
    """Return a UUID of version 1, of random parts."""
    parts = [random.getrandbits(bits) for bits in (32, 16, 12, 14, 48)]
    parts[2], parts[3] = parts[2] | 0x1000, parts[3] | 0x8000
    sizes = (8, 4, 4, 4, 12)
    return "-".join(f"{part:0{size}x}" for part, size in zip(parts, sizes, strict=True))


_MOST_RANDOM = 0x3FFFFFFF


@internal("seeded_rand", accepts_null=True, deterministic=False)
def seeded_rand(seed: int | None, call: str | None) -> float:
    """RAND(seed). With a constant seed, each row gets the next number of the ``call``."""
    known = THREAD_STATE.random_states
    first, second = known.get(call or "") or (
        ((seed or 0) * 0x10001 + 55555555 & 0xFFFFFFFF) % _MOST_RANDOM,
        ((seed or 0) * 0x10000001 & 0xFFFFFFFF) % _MOST_RANDOM,
    )
    first = (3 * first + second) % _MOST_RANDOM
    second = (first + second + 33) % _MOST_RANDOM
    if call is not None:
        known[call] = first, second
    return first / _MOST_RANDOM
