"""Reads what a server sends faster than its client does, with the client's own result.

MySQL Connector/Python asks the system twice for every packet, and converts value by value. Here the
socket is read in large pieces and rows are converted by column. What is not an ordinary number or
text is left to the client's converter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

_READ_SIZE = 1 << 16  # bytes
_HEADER_SIZE = 4  # bytes before a packet: three of its length, one of its number
_INTEGER_TYPES = frozenset({1, 2, 3, 8, 9, 13})  # TINY SHORT LONG LONGLONG INT24 YEAR
_FLOAT_TYPES = frozenset({4, 5})  # FLOAT DOUBLE
_DECIMAL_TYPES = frozenset({0, 246})
_TEXT_TYPES = frozenset(
    {15, 249, 250, 251, 252, 253, 254}
)  # VARCHAR, the BLOBs, VAR_STRING, STRING
_BINARY_CHARSET = 63  # the character set of what is no text
_SET_FLAG = 1 << 11  # a column's flag


class _PacketReader:
    """Gives one packet after another, as the client's own method does."""

    def __init__(self, sock: Any, lost: Callable[[], Exception]) -> None:
        self._sock, self._lost_error = sock, lost
        self._data = b""
        self._offset = 0

    def __call__(self, read_timeout: int | None = None) -> bytearray:  # noqa: ARG002
        if len(self._data) - self._offset < _HEADER_SIZE:
            self._fill(_HEADER_SIZE)
        start = self._offset
        length = _HEADER_SIZE + int.from_bytes(self._data[start : start + 3], "little")
        if len(self._data) - start < length:
            self._fill(length)
        start, self._offset = self._offset, self._offset + length
        return bytearray(self._data[start : self._offset])

    def _fill(self, length: int) -> None:
        """Read until so many bytes are there."""
        pieces = [self._data[self._offset :]]
        missing = length - len(pieces[0])
        while missing > 0:
            piece = self._sock.recv(_READ_SIZE)
            if not piece:
                raise self._lost_error()
            pieces.append(piece)
            missing -= len(piece)
        self._data, self._offset = b"".join(pieces), 0


def buffer_socket_reads(connection: Any, lost: Callable[[], Exception]) -> None:
    """Have a connection read its socket in large pieces, where the client lets us. ``lost`` makes
    the client's error for a socket that has come to its end."""
    holder: Any = getattr(connection, "_socket", None)
    if getattr(holder, "sock", None) is not None and hasattr(holder, "recv"):
        holder.sock.settimeout(None)  # it was for connecting
        holder.recv = _PacketReader(holder.sock, lost)


def convert_rows(
    rows: Sequence[tuple[Any, ...]], columns: Sequence[Any], converter: Any
) -> list[tuple[Any, ...]]:
    """Rows as the server's bytes, as the client would give them."""
    if not rows:
        return []
    found = []
    for column, values in zip(columns, zip(*rows, strict=True), strict=True):
        convert = _column_converter(column, converter)
        found.append([None if v is None else convert(v) for v in values])
    return list(zip(*found, strict=True))


def _column_converter(column: Any, converter: Any) -> Callable[[Any], Any]:
    """What makes a value of a column; ``column`` is the client's description of it."""
    kind, flags, charset = column[1], column[7], column[8]
    if kind in _INTEGER_TYPES:
        return int
    if kind in _FLOAT_TYPES:
        return float
    if kind in _DECIMAL_TYPES:
        return _to_decimal
    if kind in _TEXT_TYPES and charset != _BINARY_CHARSET and not flags & _SET_FLAG:
        return _to_text
    return partial(converter.to_python, column)


def _to_decimal(value: bytes) -> Decimal:
    return Decimal(value.decode("ascii"))


def _to_text(value: bytes) -> str | bytes:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value
