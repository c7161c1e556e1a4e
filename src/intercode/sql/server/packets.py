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

_PIECE = 1 << 16  # bytes
_HEAD = 4  # bytes before a packet: three of its length, one of its number
_WHOLE = frozenset({1, 2, 3, 8, 9, 13})  # TINY SHORT LONG LONGLONG INT24 YEAR
_REAL = frozenset({4, 5})  # FLOAT DOUBLE
_DECIMAL = frozenset({0, 246})
_TEXT = frozenset({15, 249, 250, 251, 252, 253, 254})  # VARCHAR, the BLOBs, VAR_STRING, STRING
_BINARY = 63  # the character set of what is no text
_SET = 1 << 11  # a column's flag


class _Packets:
    """Gives one packet after another, as the client's own method does."""

    def __init__(self, sock: Any, lost: Callable[[], Exception]) -> None:
        self._sock, self._lost = sock, lost
        self._data = b""
        self._at = 0

    def __call__(self, read_timeout: int | None = None) -> bytearray:  # noqa: ARG002
        if len(self._data) - self._at < _HEAD:
            self._need(_HEAD)
        start = self._at
        length = _HEAD + int.from_bytes(self._data[start : start + 3], "little")
        if len(self._data) - start < length:
            self._need(length)
        start, self._at = self._at, self._at + length
        return bytearray(self._data[start : self._at])

    def _need(self, length: int) -> None:
        """Read until so many bytes are there."""
        pieces = [self._data[self._at :]]
        missing = length - len(pieces[0])
        while missing > 0:
            piece = self._sock.recv(_PIECE)
            if not piece:
                raise self._lost()
            pieces.append(piece)
            missing -= len(piece)
        self._data, self._at = b"".join(pieces), 0


def read_in_pieces(connection: Any, lost: Callable[[], Exception]) -> None:
    """Have a connection read its socket in large pieces, where the client lets us. ``lost`` makes
    the client's error for a socket that has come to its end."""
    holder: Any = getattr(connection, "_socket", None)
    if getattr(holder, "sock", None) is not None and hasattr(holder, "recv"):
        holder.sock.settimeout(None)  # it was for connecting
        holder.recv = _Packets(holder.sock, lost)


def typed(
    rows: Sequence[tuple[Any, ...]], columns: Sequence[Any], converter: Any
) -> list[tuple[Any, ...]]:
    """Rows as the server's bytes, as the client would give them."""
    if not rows:
        return []
    found = []
    for column, values in zip(columns, zip(*rows, strict=True), strict=True):
        convert = _conversion(column, converter)
        found.append([None if v is None else convert(v) for v in values])
    return list(zip(*found, strict=True))


def _conversion(column: Any, converter: Any) -> Callable[[Any], Any]:
    """What makes a value of a column; ``column`` is the client's description of it."""
    kind, flags, charset = column[1], column[7], column[8]
    if kind in _WHOLE:
        return int
    if kind in _REAL:
        return float
    if kind in _DECIMAL:
        return _decimal
    if kind in _TEXT and charset != _BINARY and not flags & _SET:
        return _text
    return partial(converter.to_python, column)


def _decimal(value: bytes) -> Decimal:
    return Decimal(value.decode("ascii"))


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value
