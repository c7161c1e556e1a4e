"""Passes the requests of HTTP/1 for one host, and nothing that a server could read as another."""

from __future__ import annotations

import re
from typing import Literal

from intercode_sandbox.network.client_hello import MalformedError

PORT = 80
_MAX_HEAD, _MAX_LINE, _MAX_FIELDS = 1 << 16, 1 << 12, 200
_MAX_STEPS = 64  # heads, lines and chunks that are read at a time
_END = b"\r\n"
_REQUEST = re.compile(rb"(?!CONNECT )([A-Z]{1,20}) ([!-~]+) HTTP/1\.([01])\Z")
_WITHOUT_BODY = (b"GET", b"HEAD", b"OPTIONS", b"TRACE")  # some servers take one for a request
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([ -~\t\x80-\xff]*?)[ \t]*\Z")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})(?:[ \t]*;[ -~\t]*)?\Z")
_BARE_FEED = re.compile(rb"(?<!\r)\n")
_LENGTH = re.compile(rb"[0-9]{1,15}\Z")


class OtherHostError(Exception):
    """A request is for another host, which the message names."""


class RequestFilter:
    """Reads what a client sends to the host ``name``, request by request.

    >>> from intercode_sandbox.network.http_requests import RequestFilter
    >>> passed = RequestFilter("a.test").feed(b"GET / HTTP/1.1\\r\\nHost: a.test\\r\\n\\r\\nGET / ")
    >>> passed.endswith(b"a.test\\r\\n\\r\\n")
    True
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._held = b""  # the start of a head, or of a line of a body in chunks
        self._left = 0  # bytes of a body, or of a chunk
        self.is_behind = False  # there is more to read of what came: feed nothing
        self._line: Literal["", "size", "end", "trailer"] = ""  # what comes next, in chunks

    def feed(self, data: bytes) -> bytes:
        """Return what can be sent on. Raises OtherHostError, or MalformedError for what servers
        could read in different ways."""
        data, at, steps = self._held + data, 0, 0
        self.is_behind = False
        while at < len(data):
            if steps == _MAX_STEPS:
                self.is_behind = True
                break
            steps += 1
            if self._left:
                count = min(self._left, len(data) - at)
                self._left -= count
            elif self._line:
                count = self._read_line(data, at)
            else:
                count = self._read_head(data, at)
            if not count:
                break
            at += count
        self._held = data[at:]
        return data[:at]

    def _read_head(self, data: bytes, at: int) -> int:
        """Return the length of the head of a request, 0 if it is incomplete."""
        end = data.find(2 * _END, at)
        if end < 0:
            is_request = data[at : at + 1].isupper() and not _BARE_FEED.search(data, at)
            if len(data) - at > _MAX_HEAD or not is_request:
                raise MalformedError
            return 0
        self._check_head(data[at:end].split(_END))
        return end + 2 * len(_END) - at

    def _check_head(self, lines: list[bytes]) -> None:
        if len(lines) > _MAX_FIELDS:
            raise MalformedError
        request = _REQUEST.match(lines[0])
        fields = [_FIELD.match(line) for line in lines[1:]]
        if request is None or None in fields:
            raise MalformedError
        found: dict[bytes, list[bytes]] = {}
        for field in fields:
            assert field is not None
            found.setdefault(field[1].lower(), []).append(field[2])
        hosts = found.get(b"host", [])
        if len(hosts) > 1 or b"upgrade" in found:
            raise MalformedError
        method, target, version = request.groups()
        if not target.startswith(b"/") and target != b"*":
            scheme, slashes, rest = target.partition(b"://")
            if scheme.lower() != b"http" or not slashes:
                raise MalformedError
            hosts = [*hosts, re.split(rb"[/?#]", rest, maxsplit=1)[0]]
        for host in hosts:
            self._check_host(host)
        encodings = found.get(b"transfer-encoding", [])
        self._start_body(found.get(b"content-length", []), encodings)
        if encodings and version == b"0":
            raise MalformedError
        if (self._left or self._line) and method in _WITHOUT_BODY:
            raise MalformedError

    def _check_host(self, host: bytes) -> None:
        name, _, port = host.decode("latin-1").lower().partition(":")
        if name.removesuffix(".") != self._name or port not in ("", str(PORT)):
            raise OtherHostError(host[:253].decode("latin-1"))

    def _start_body(self, lengths: list[bytes], encodings: list[bytes]) -> None:
        if encodings:
            if lengths or [one.lower() for one in encodings] != [b"chunked"]:
                raise MalformedError
            self._line = "size"
        elif lengths:
            if len(lengths) > 1 or not _LENGTH.match(lengths[0]):
                raise MalformedError
            self._left = int(lengths[0])

    def _read_line(self, data: bytes, at: int) -> int:
        """Return the length of a line around chunks, 0 if it is incomplete."""
        end = data.find(_END, at, at + _MAX_LINE)
        if end < 0:
            if len(data) - at >= _MAX_LINE:
                raise MalformedError
            return 0
        line = data[at:end]
        if self._line == "size" and (size := _CHUNK.match(line)):
            self._left = int(size[1], 16)
            self._line = "end" if self._left else "trailer"
        elif self._line == "end" and not line:
            self._line = "size"
        elif self._line == "trailer" and (not line or _FIELD.match(line)):
            self._line = "trailer" if line else ""
        else:
            raise MalformedError
        return end + len(_END) - at
