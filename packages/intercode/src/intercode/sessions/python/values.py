"""Decodes the plain values that an interpreter sends, as untrusted data.

Decoded values have built-in types only, and no decoded text is run. Any other object becomes an
``Opaque``, which equals nothing. Values so large that they would take long to decode, compare or
calculate with are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from intercode.core.types.untrusted import MAX_RETURNED_VALUES, parse_untrusted

_MAX_HEX_DIGITS = 100_000  # hexadecimal digits of a number
_MAX_RANGE = 200_000  # length of a range
_MAX_HASHED = 10_000  # elements of all sets, keys and values of all dictionaries


@dataclass(frozen=True, slots=True, eq=False)
class Opaque:
    """A value that cannot be sent: its type's name, and its truth value."""

    kind: str
    truth: bool

    def __bool__(self) -> bool:
        return self.truth


@dataclass(frozen=True, slots=True, eq=False)
class IteratorItems:
    """The items of an exhausted iterator. Like an iterator, it equals nothing else."""

    kind: str
    items: tuple[Any, ...]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)


@dataclass(frozen=True, slots=True)
class ReprValue:
    """A decimal, a fraction, a date and the like, given by its ``repr``."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class ExceptionInfo:
    """The exception that an expression raised."""

    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" if self.message else self.kind


def decode_value(text: str) -> Any:
    """Return the value that a text holds. Raises ValueError for any text without a valid value."""
    return _decode_row(parse_untrusted(text, MAX_RETURNED_VALUES))


def _decode_row(row: Any) -> Any:
    try:
        return _decode(row, [_MAX_HASHED])
    except RecursionError as e:
        raise ValueError("nested too deeply") from e
    except (TypeError, KeyError, IndexError, OverflowError) as e:
        raise ValueError(f"no value: {e}") from e


def decode_values(text: str, count: int) -> list[Any]:
    """Return the ``count`` values of a list. Raises ValueError as ``decode_value``."""
    rows = parse_untrusted(text, MAX_RETURNED_VALUES)
    if not isinstance(rows, list) or len(rows) != count:
        raise ValueError(f"not {count} values")
    return [_decode_row(row) for row in rows]


def _hex_integer(text: str) -> int:
    if len(text) > _MAX_HEX_DIGITS:
        raise ValueError("too large a number")
    return int(text, 16)


def _range(numbers: list[Any]) -> range:
    found = range(*numbers)
    if len(found) > _MAX_RANGE:
        raise ValueError("too long a range")
    return found


def _decode(row: Any, hashed: list[int]) -> Any:
    """Decode one row.

    ``hashed`` counts down how many more elements may go into sets and dictionaries: an agent can
    choose numbers whose hashes all collide.
    """
    if row is None or isinstance(row, bool | int | str):
        return row
    if not isinstance(row, list) or not row or not isinstance(row[0], str):
        raise ValueError(f"no value: {row!r:.40}")
    kind, parts = row[0], row[1:]
    if kind in _LEAF_DECODERS:
        return _LEAF_DECODERS[kind](*parts)
    if kind in ("s", "z", "d"):
        hashed[0] -= len(parts)
        if hashed[0] < 0:
            raise ValueError("too many elements of sets and dictionaries")
    values = [_decode(part, hashed) for part in parts]
    if kind == "d":
        return dict(zip(values[::2], values[1::2], strict=True))
    if kind == "g":
        return IteratorItems(str(values[0]), tuple(values[1:]))
    return _CONTAINER_TYPES[kind](values)


_LEAF_DECODERS: dict[str, Any] = {
    "i": _hex_integer,
    "f": float,
    "c": lambda a, b: complex(float(a), float(b)),
    "b": bytes.fromhex,
    "a": bytearray.fromhex,
    "o": lambda kind, truth: Opaque(str(kind), bool(truth)),
    "v": lambda kind, shown: ReprValue(str(kind), str(shown)),
    "!": lambda kind, message: ExceptionInfo(str(kind), str(message)),
}
_CONTAINER_TYPES: dict[str, Any] = {
    "l": list,
    "t": tuple,
    "s": set,
    "z": frozenset,
    "r": _range,
}
