"""Reads the names that a TLS client asks for, in the messages that it sends in clear."""

from __future__ import annotations

MAX_HELLO = 1 << 14
"""The most bytes of a ClientHello."""
_MAX_RECORDS = 16  # of a ClientHello, or between two
_CHANGE, _ALERT, _HANDSHAKE, _HEARTBEAT = 20, 21, 22, 24
_CLIENT_HELLO, _HOST_NAME = 1, 0
_SERVER_NAME, _EARLY_DATA, _ENCRYPTED_HELLO = 0, 42, 0xFE0D
_HEADER = 5


class MalformedError(Exception):
    """The bytes begin like a message of TLS and are none, or one that hides something."""


class OtherNameError(Exception):
    """TLS asks for another name, which the message is, or for none."""


class _Reader:
    """Reads numbers and fields. Raises MalformedError where the bytes end."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if len(found) < count:
            raise MalformedError
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


class HandshakeFilter:
    """Reads what a client sends to the host ``name``. A server that answers with a
    HelloRetryRequest gets a second ClientHello, which is checked as well.

    >>> from intercode_sandbox.network.client_hello import HandshakeFilter
    >>> HandshakeFilter("a.test").feed(b"SSH-2.0-x\\r\\n")
    b'SSH-2.0-x\\r\\n'
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._held, self._passed = b"", 0  # what is not read yet, and how much of that was passed
        self._message, self._waiting = b"", b""  # of a ClientHello, and its records
        self._records = 0
        self._is_tls = self._is_open = False
        self._is_first = True

    def feed(self, data: bytes) -> bytes:
        """Return what can be sent on. Raises OtherNameError, or MalformedError for a message of
        which servers could make different things."""
        if self._is_open:
            return data
        self._held += data
        if not self._is_tls:
            self._is_tls = self._begins_tls()
        if not self._is_tls:  # or not yet: no server makes anything of so few bytes
            passed, self._passed = self._held[self._passed :], len(self._held)
            return passed
        passed = b""
        while not self._is_open and (record := self._next_record()):
            passed += self._read_record(record)
        if self._is_open:
            passed, self._held = passed + self._held, b""
        if self._passed and passed:
            passed, self._passed = passed[self._passed :], 0
        return passed

    @property
    def is_incomplete(self) -> bool:
        """Whether a message has begun and not ended."""
        return self._is_tls and bool(self._held or self._waiting)

    def _begins_tls(self) -> bool:
        """Return whether the first bytes are those of TLS, as far as they are known."""
        first = self._held[:4]
        if len(first) > 1 and _CHANGE <= first[0] <= _HEARTBEAT and first[1] == 3:
            if first[0] != _HANDSHAKE:
                raise MalformedError
            return True
        if len(first) == 4 and first[0] & 0x80 and first[2:] == b"\1\3":
            raise OtherNameError("")  # in the form of SSL 2, which holds no name
        self._is_open = len(first) == 4 or (len(first) > 1 and not first[0] & 0x80)
        return False

    def _next_record(self) -> bytes:
        """Take a whole record; nothing if it is incomplete."""
        if len(self._held) < _HEADER:
            return b""
        if self._held[1] != 3:
            raise MalformedError
        length = int.from_bytes(self._held[3:_HEADER])
        if not length or length > MAX_HELLO + 2048:
            raise MalformedError
        if len(self._held) < _HEADER + length:
            return b""
        record, self._held = self._held[: _HEADER + length], self._held[_HEADER + length :]
        return record

    def _read_record(self, record: bytes) -> bytes:
        """Return what can be sent on after a record."""
        kind, content = record[0], record[_HEADER:]
        self._records += 1
        if self._records > _MAX_RECORDS:
            raise MalformedError
        if kind != _HANDSHAKE:
            if self._is_first or self._waiting:
                raise MalformedError
            self._is_open = kind not in (_CHANGE, _ALERT)
            return record
        if not self._waiting and not self._is_first:
            if len(content) < 4:
                raise MalformedError
            if content[:2] != b"\1\0":  # another message, or an encrypted one
                self._is_open = True
                return record
        self._message += content
        self._waiting += record
        if len(self._message) < 4:
            return b""
        length = int.from_bytes(self._message[1:4])
        if self._message[0] != _CLIENT_HELLO or length > MAX_HELLO:
            raise MalformedError
        if len(self._message) < 4 + length:
            return b""
        if len(self._message) > 4 + length:
            raise MalformedError
        self._check(_requested_name(self._message[4:]))
        passed, self._message, self._waiting = self._waiting, b"", b""
        self._is_first, self._records = False, 0
        return passed

    def _check(self, asked: str) -> None:
        if asked.lower().removesuffix(".") != self._name:
            raise OtherNameError(asked)


def _requested_name(body: bytes) -> str:
    """Return the name in a ClientHello: empty without one. Raises MalformedError also if more than
    this name counts: data before the server's answer, or a second, encrypted ClientHello."""
    hello = _Reader(body)
    hello.take(2 + 32)  # version and random number
    hello.field(1)  # session
    hello.field(2)  # ciphers
    hello.field(1)  # compression
    names: list[bytes] = []
    extensions = _Reader(b"") if hello.is_empty else hello.field(2)
    while not extensions.is_empty:
        kind, content = extensions.number(2), extensions.field(2)
        if kind in (_EARLY_DATA, _ENCRYPTED_HELLO):
            raise MalformedError
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
