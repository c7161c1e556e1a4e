"""Answers the DNS queries of a sandbox, without asking anybody."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from ipaddress import IPv4Address

MAX_QUERY = 512
_HEADER = struct.Struct("!6H")
_ANSWER = struct.Struct("!HHHIH4s")
_ADDRESS, _INTERNET, _POINTER_TO_QUESTION, _SECONDS = 1, 1, 0xC00C, 60
_RESPONSE, _OPERATION, _KEPT_FLAGS, _RECURSION = 0x8000, 0x7800, 0x0100, 0x0080
_MALFORMED, _NO_SUCH_NAME, _NOT_IMPLEMENTED, _REFUSED = 1, 3, 4, 5
_NAME_BYTES = re.compile(rb"[A-Za-z0-9_-]{1,63}\Z")


def answer_query(query: bytes, find: Callable[[str], IPv4Address | None]) -> bytes | None:
    """Return the answer to a query; None to what is no query.

    ``find`` returns the address of a name in lower case, or None, which is answered with NXDOMAIN.
    An existing name has no record of another type.
    """
    if not _HEADER.size <= len(query) <= MAX_QUERY:
        return None
    number, flags, questions, *_ = _HEADER.unpack_from(query)
    if flags & _RESPONSE:
        return None
    if flags & _OPERATION:
        return _respond(number, flags, _NOT_IMPLEMENTED)
    found = _read_question(query) if questions == 1 else None
    if found is None:
        return _respond(number, flags, _MALFORMED)
    name, kind, network, question = found
    if network != _INTERNET:
        return _respond(number, flags, _REFUSED, question)
    address = find(name)
    if address is None:
        return _respond(number, flags, _NO_SUCH_NAME, question)
    if kind != _ADDRESS:
        return _respond(number, flags, 0, question)
    answer = _ANSWER.pack(_POINTER_TO_QUESTION, _ADDRESS, _INTERNET, _SECONDS, 4, address.packed)
    return _respond(number, flags, 0, question, answer)


def _read_question(query: bytes) -> tuple[str, int, int, bytes] | None:
    """Return the name, type and class of the first question, and its bytes. None if it has a
    pointer, or a label that no host name has."""
    labels: list[bytes] = []
    at = _HEADER.size
    while at < len(query) and query[at]:
        label = query[at + 1 : at + 1 + query[at]]
        if query[at] > 63 or len(label) < query[at] or not _NAME_BYTES.match(label):
            return None
        labels.append(label)
        at += 1 + len(label)
    end = at + 5
    if end > len(query) or not labels or at - _HEADER.size > 254:
        return None
    kind, network = struct.unpack_from("!2H", query, at + 1)
    name = b".".join(labels).decode().lower()
    return name, kind, network, query[_HEADER.size : end]


def _respond(
    number: int, flags: int, status: int, question: bytes = b"", answer: bytes = b""
) -> bytes:
    flags = _RESPONSE | flags & (_OPERATION | _KEPT_FLAGS) | _RECURSION | status
    return _HEADER.pack(number, flags, bool(question), bool(answer), 0, 0) + question + answer
