"""Numbers: rounding as MySQL rounds, and how numbers look as text."""

from __future__ import annotations

import math
import random
import zlib
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from typing import Any

from intercode.sql.embedded.catalog.values import leading_number
from intercode.sql.embedded.functions.runtime import ScalarFunction, accepts_null


def to_decimal(value: float | int) -> Decimal:
    """The decimal that a REAL stands for: the shortest one that reads back as it."""
    return Decimal(repr(value))


def round_number(value: float, places: int, exact: int) -> float:
    """ROUND: halves away from zero for exact numbers, to even for doubles (C's rint)."""
    places = max(-30, min(30, int(places)))
    if exact:
        return float(to_decimal(value).quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP))
    power = 10.0 ** abs(places)
    scaled = value / power if places < 0 else value * power
    if not math.isfinite(scaled):
        return value
    whole = float(round(scaled))
    return whole * power if places < 0 else whole / power


def truncate(value: float, places: int, exact: int) -> float:
    """TRUNCATE: toward zero."""
    places = max(-30, min(30, int(places)))
    return float(to_decimal(value).quantize(Decimal(1).scaleb(-places), rounding=ROUND_DOWN))


def cast_decimal(value: Any, scale: int, limit: int) -> float:
    """CAST AS DECIMAL: rounded, and held within what the type can show."""
    found = to_decimal(value).quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP)
    largest = Decimal(limit) - Decimal(1).scaleb(-scale)
    return float(max(-largest, min(largest, found)))


def number_text(value: Any, scale: int, small: int, exact: int) -> str:
    """A number as text: a decimal with its scale, a double with as many digits as it needs."""
    if exact:
        return str(to_decimal(value).quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP))
    if scale >= 0:
        return f"{value:.{scale}f}"
    return double_text(float(f"{value:.6g}") if small else float(value))


def double_text(value: float) -> str:
    """A double as MySQL writes it."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    text = repr(value)
    if "e" not in text:
        return text
    mantissa, _, power = text.partition("e")
    return f"{mantissa.removesuffix('.0')}e{int(power)}"


def mod(a: float, b: float) -> float | None:
    return math.fmod(a, b) if b else None


def log(*args: float) -> float | None:
    """LOG(x), LOG(base, x); NULL outside its domain."""
    if min(args) <= 0:
        return None
    return math.log(args[0]) if len(args) == 1 else math.log(args[1]) / math.log(args[0])


def atan(*args: float) -> float:
    return math.atan(args[0]) if len(args) == 1 else math.atan2(*args)


def format_number(value: float, places: float, *_: Any) -> str:
    """FORMAT: commas between thousands."""
    places = max(0, min(30, int(places)))
    exact = to_decimal(value).quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
    return f"{exact:,}"


def conv(text: str, source: float, target: float) -> str | None:
    """CONV between bases of 2 to 36."""
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


def hex_text(value: Any) -> str:
    if isinstance(value, (int, float)):
        return f"{int(value) & 0xFFFFFFFFFFFFFFFF:X}"
    return (value if isinstance(value, bytes) else value.encode()).hex().upper()


@accepts_null
def rand(seed: int | None) -> float:
    """RAND; with a seed the same number for every row, which MySQL's first one would not be."""
    return random.random() if seed is None else random.Random(seed).random()


def text_number(value: Any) -> float:
    return leading_number(
        value if isinstance(value, str) else bytes(value).decode("utf-8", "replace")
    )


FUNCTIONS: dict[str, ScalarFunction] = {
    "round": round_number, "truncate": truncate, "decimal": cast_decimal, "shown": number_text,
    "mod": mod, "log": log, "atan": atan, "format": format_number,
    "conv": conv, "hex": hex_text, "rand": rand, "number": text_number,
    "ln": lambda x: math.log(x) if x > 0 else None,
    "log2": lambda x: math.log2(x) if x > 0 else None,
    "log10": lambda x: math.log10(x) if x > 0 else None,
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else None,
    "exp": math.exp, "pow": lambda x, y: float(x) ** float(y), "sin": math.sin, "cos": math.cos,
    "tan": math.tan, "cot": lambda x: 1 / math.tan(x), "asin": math.asin, "acos": math.acos,
    "degrees": math.degrees, "radians": math.radians, "floor": math.floor, "ceiling": math.ceil,
    "sign": lambda x: (x > 0) - (x < 0), "bin": lambda x: f"{int(x) & 0xFFFFFFFFFFFFFFFF:b}",
    "oct": lambda x: f"{int(x) & 0xFFFFFFFFFFFFFFFF:o}", "bit_count": lambda x: int(x).bit_count(),
    "crc32": lambda x: zlib.crc32(x.encode()),
}  # fmt: skip
