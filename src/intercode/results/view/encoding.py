"""Values as the JSON that a browser reads."""

from __future__ import annotations

import json
import math
from typing import Any


def browser_json(value: Any) -> str:
    """A value of JSON types as ASCII text. Infinities and NaN, which Python's JSON has and a
    browser's has not, become their names."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(_replace_non_finite(value), allow_nan=False)


def _replace_non_finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _replace_non_finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_non_finite(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value
