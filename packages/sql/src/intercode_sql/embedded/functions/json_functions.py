"""JSON functions."""

from __future__ import annotations

import json
from typing import Any

from intercode_sql.embedded.catalog.types import BOOL, INT, JSON, JSON_TEXT
from intercode_sql.embedded.functions.registry import TEXT, internal, scalar

_MISSING = object()


@scalar("JSON_EXTRACT", args=[TEXT, TEXT], returns=JSON)
def json_extract(text: str, path: str) -> str | None:
    """Return the value at one path of names and positions."""
    value: Any = json.loads(text)
    for part in path.removeprefix("$").replace("[", ".[").split(".")[1:]:
        if part.startswith("["):
            value = value if isinstance(value, list) else [value]  # another value is its own [0]
            at = int(part[1:-1])
            value = value[at] if at < len(value) else _MISSING
        else:
            value = value.get(part.strip('"'), _MISSING) if isinstance(value, dict) else _MISSING
        if value is _MISSING:
            return None
    return json.dumps(value, ensure_ascii=False)


@scalar("JSON_UNQUOTE", args=[TEXT], returns=JSON_TEXT)
def json_unquote(text: str) -> str:
    return str(json.loads(text)) if text.startswith('"') and text.endswith('"') else text


@internal("json_quote")
def json_quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


@scalar("JSON_VALID", args=[TEXT], returns=BOOL)
def json_valid(text: str) -> int:
    try:
        json.loads(text)
    except ValueError:
        return 0
    return 1


@scalar("JSON_LENGTH", args=[TEXT], returns=INT)
def json_length(text: str) -> int:
    value = json.loads(text)
    return len(value) if isinstance(value, (list, dict)) else 1
