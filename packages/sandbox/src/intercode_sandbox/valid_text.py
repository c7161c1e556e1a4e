"""Text that every encoder can take: without lone surrogates.

A byte of a program's output or of a file's name that is not UTF-8 is such a surrogate (``\\udc80``
for 0x80), and a model may write any. No encoding of Unicode can hold one, so a server that sends it
fails.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def replace_surrogates(text: str) -> str:
    """Return a text with U+FFFD for each lone surrogate."""
    return _SURROGATE.sub(_REPLACEMENT, text) if has_surrogates(text) else text


def has_surrogates(text: str) -> bool:
    """Return whether a text holds a lone surrogate."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def sendable(value: Any) -> Any:
    """Return JSON types with U+FFFD for each lone surrogate in their texts, also in keys."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, Mapping):
        return {sendable(k): sendable(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [sendable(v) for v in value]
    return value


def decode_text(data: bytes) -> str | None:
    """Return UTF-8 text, or None for binary data."""
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None
