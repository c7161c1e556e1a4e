"""Reads the name that a TLS client asks for, from the first message that it sends."""

from __future__ import annotations

_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME, _HOST_NAME = 22, 1, 0, 0
MAX_HELLO = 1 << 14
"""The most bytes of a first message that are read."""


class IncompleteError(Exception):
    """More bytes are needed."""


class MalformedError(Exception):
    """The bytes begin like a message of TLS and are none."""


class _Reader:
    """Reads numbers and fields. Raises ``error`` where the bytes end."""

    def __init__(self, data: bytes, error: type[Exception] = MalformedError) -> None:
        self._data, self._at, self._error = data, 0, error

    def take(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if len(found) < count:
            raise self._error
        self._at += count
        return found

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def field(self, size: int) -> _Reader:
        """Return a reader of a field that begins with its length in ``size`` bytes."""
        return _Reader(self.take(self.number(size)))

    @property
    def is_empty(self) -> bool:
        return self._at >= len(self._data)


def requested_name(data: bytes) -> str | None:
    """Return the name in the first message of a TLS client: empty without one, None if the bytes
    are not TLS. Raises IncompleteError if more are needed, MalformedError for a message of which
    servers could make different things."""
    if not data:
        raise IncompleteError
    if data[0] & 0x80 and len(data) > 2 and data[2] == _CLIENT_HELLO:
        return ""  # in the form of SSL 2, which holds no name
    if data[0] & 0x80 and len(data) < 3:
        raise IncompleteError
    if data[0] != _HANDSHAKE:
        return None
    hello = _Reader(_handshake(data))
    hello.take(2 + 32)  # version and random number
    hello.field(1)  # session
    hello.field(2)  # ciphers
    hello.field(1)  # compression
    names: list[bytes] = []
    extensions = _Reader(b"") if hello.is_empty else hello.field(2)
    while not extensions.is_empty:
        kind, content = extensions.number(2), extensions.field(2)
        if kind != _SERVER_NAME:
            continue
        entries = content.field(2)
        while not entries.is_empty:
            if entries.number(1) != _HOST_NAME:
                raise MalformedError
            names.append(entries.take(entries.number(2)))
        if not content.is_empty:
            raise MalformedError
    if len(names) > 1 or not hello.is_empty:
        raise MalformedError
    return names[0].decode("latin-1") if names else ""


def _handshake(data: bytes) -> bytes:
    """Return the body of a ClientHello, which may be spread over several records."""
    records, message = _Reader(data, IncompleteError), b""
    while True:
        if records.number(1) != _HANDSHAKE or records.number(1) != 3:
            raise MalformedError
        records.take(1)
        message += records.take(records.number(2))
        if len(message) < 4:
            continue
        length = int.from_bytes(message[1:4])
        if message[0] != _CLIENT_HELLO or length > MAX_HELLO:
            raise MalformedError
        if len(message) >= 4 + length:
            return message[4 : 4 + length]
