"""Recognises the host of a registry in the name of an image."""

from __future__ import annotations

import re

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_PORT = r":\d{1,5}"
_HOST = re.compile(
    rf"(?:localhost|{_LABEL}(?:\.{_LABEL})+|\[[0-9A-Fa-f:]+\])(?:{_PORT})?|{_LABEL}{_PORT}"
)


def is_registry_host(text: str) -> bool:
    """Return whether the first part of an image's name is the host of a registry, as in Docker: it
    has a dot or a port, or is ``localhost``."""
    return _HOST.fullmatch(text) is not None
