"""Redaction of secrets: API keys, and headers or fields that hold one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

REDACTED = "[hidden]"
MIN_SECRET_LENGTH = 8
"""Shorter texts are not treated as secrets: ``EMPTY`` is a placeholder."""

_SECRET_NAME = re.compile(
    r"(?:^|[-_])(?:api[-_]?key|secret|password|authorization|credentials?"
    r"|(?:auth|access|private|bearer)[-_]?token)$|^(?:key|token)$",
    re.I,
)
_SECRET_HEADER = re.compile(r"key|token|secret|auth|cookie|password|credential", re.I)


def is_secret_name(name: str) -> bool:
    """Return whether an option or field of this name holds a secret."""
    return bool(_SECRET_NAME.search(name))


def is_secret_header(name: str) -> bool:
    """Return whether a header of this name may hold a secret."""
    return bool(_SECRET_HEADER.search(name))


def redact(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy in which secrets at any depth are replaced by ``[hidden]``, fit to be recorded.
    ``values`` are a model's options, for example, of which ``headers`` is one."""
    hidden: dict[str, Any] = {}
    for name, value in values.items():
        if name == "headers" and isinstance(value, Mapping):
            hidden[name] = {k: REDACTED if is_secret_header(k) else v for k, v in value.items()}
        elif isinstance(value, Mapping):
            hidden[name] = redact(value)
        else:
            hidden[name] = REDACTED if is_secret_name(name) and isinstance(value, str) else value
    return hidden


def find_secrets(values: Mapping[str, Any]) -> list[str]:
    """Return the secrets that ``redact`` would replace; for ``Bearer X`` also ``X``."""
    secrets: list[str] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            test = is_secret_header if name == "headers" else is_secret_name
            secrets += find_secrets({k: v for k, v in value.items() if not isinstance(v, str)})
            secrets += [v for k, v in value.items() if isinstance(v, str) and test(k)]
        elif is_secret_name(name) and isinstance(value, str):
            secrets.append(value)
    return [part for secret in secrets for part in {secret, *secret.split()[-1:]}]


def redact_text(text: str, secrets: Iterable[str]) -> str:
    """Return the text without the given secrets. Short secrets are placeholders and stay."""
    for secret in secrets:
        if len(secret) >= MIN_SECRET_LENGTH:
            text = text.replace(secret, REDACTED)
    return text
