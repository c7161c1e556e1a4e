"""What must not be written down: keys, and headers or fields that hold one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

HIDDEN = "[hidden]"
SHORTEST = 8
"""Characters of the shortest text that is taken for a secret; ``EMPTY`` is none."""

_NAMES = re.compile(
    r"(?:^|[-_])(?:api[-_]?key|secret|password|authorization|credentials?"
    r"|(?:auth|access|private|bearer)[-_]?token)$|^(?:key|token)$",
    re.I,
)
_HEADERS = re.compile(r"key|token|secret|auth|cookie|password|credential", re.I)


def is_secret(name: str) -> bool:
    """Whether an option or a field of that name holds a secret."""
    return bool(_NAMES.search(name))


def is_secret_header(name: str) -> bool:
    """Whether a header of that name may hold a secret."""
    return bool(_HEADERS.search(name))


def hide(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same with ``[hidden]`` in place of secrets, at any depth, so that it may be written down:
    options of a model, for instance, of which ``headers`` is one."""
    hidden: dict[str, Any] = {}
    for name, value in values.items():
        if name == "headers" and isinstance(value, Mapping):
            hidden[name] = {k: HIDDEN if is_secret_header(k) else v for k, v in value.items()}
        elif isinstance(value, Mapping):
            hidden[name] = hide(value)
        else:
            hidden[name] = HIDDEN if is_secret(name) and isinstance(value, str) else value
    return hidden


def secrets_in(values: Mapping[str, Any]) -> list[str]:
    """The secrets that ``hide`` would hide; of ``Bearer X``, X as well."""
    found: list[str] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            test = is_secret_header if name == "headers" else is_secret
            found += secrets_in({k: v for k, v in value.items() if not isinstance(v, str)})
            found += [v for k, v in value.items() if isinstance(v, str) and test(k)]
        elif is_secret(name) and isinstance(value, str):
            found.append(value)
    return [part for secret in found for part in {secret, *secret.split()[-1:]}]


def clean(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets. Those of few characters are placeholders and stay."""
    for secret in secrets:
        if len(secret) >= SHORTEST:
            text = text.replace(secret, HIDDEN)
    return text
