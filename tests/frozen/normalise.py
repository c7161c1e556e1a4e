"""Removes from outputs what differs between two runs of the same version."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from frozen.renames import KEYS, rename_text

DROPPED = {"v", "schema_version", "version", "versions"}
"""Keys that no comparison reads."""
TIMES = {
    "seconds",
    "started",
    "began",
    "ended",
    "at",
    "made",
    "duration",
    "wall",
    "created",
    "total_seconds",
    "timestamp",
    "elapsed",
    "date",
}
"""Keys of times and durations."""

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?")
_FIXED_CLOCKS = ("2026-01-01", "1970-01-01")
_DURATION = re.compile(r"(?<![\w.])\d+(\.\d+)?(e-?\d+)?( ?(ms|s|seconds|min|h)\b|/s)")
_SOURCE = re.compile(r"(/[\w.+-]+)+/(site-packages|src)/intercode")
_PYTHON = re.compile(r"[^\s'\"]*/python(3[.\d]*)?(?=[\s'\"]|$)")
_VERSION = re.compile(r"\b0\.1\.0\b|\bPython 3\.\d+\.\d+")
_RANDOM = re.compile(r"/tmp/[\w./-]*tmp\w+|/private/\d+-\w+|127\.0\.0\.1:\d+|\bpid \d+")


def clean_text(text: str, work: Path, ids: dict[str, str]) -> str:
    """Return a text without paths, times and versions. ``ids``: identifiers and their labels."""
    for path in (work, work.resolve()):
        text = text.replace(str(path), "<WORK>")
    text = _SOURCE.sub("<SOURCE>", text)
    text = _PYTHON.sub("<PYTHON>", text)
    text = _TIMESTAMP.sub(lambda m: m[0] if m[0].startswith(_FIXED_CLOCKS) else "<TIME>", text)
    text = _DURATION.sub("<DURATION>", text)
    text = _VERSION.sub("<VERSION>", text)
    text = _RANDOM.sub("<RANDOM>", text)
    return re.sub(r"\b[0-9a-f]{16}\b", lambda m: ids.get(m[0], m[0]), text)


def clean_json(value: Any, key: str = "", clean: Callable[[str], str] = str) -> Any:
    """Return JSON with new names, without times, versions and the state of the checkout.

    ``key``: the new name of the value's own key. ``clean`` is applied to every text.
    """
    if isinstance(value, dict):
        named = {KEYS.get(old, old): v for old, v in value.items()}
        return {
            name: "<TIME>" if name in TIMES and v is not None else clean_json(v, name, clean)
            for name, v in named.items()
            if name not in DROPPED and not (name == "code" and isinstance(v, dict))
        }
    if isinstance(value, list):
        if all(isinstance(v, str) for v in value) and value == sorted(value):  # names
            return sorted(clean(KEYS.get(v, rename_text(v, key))) for v in value)
        return [clean_json(v, key, clean) for v in value]
    return clean(rename_text(value, key)) if isinstance(value, str) else value


def hide_digests(text: str) -> str:
    """Replace SHA-256 digests of texts that contain times."""
    return re.sub(r"[0-9a-f]{64}", "<DIGEST>", text)


def figures(text: str) -> list[str]:
    """Return the words with a digit of each line that has any: the content of printed tables."""
    word = r"[^\s|&,;()\[\]{}\\\"']*"
    lines = (re.findall(rf"{word}\d{word}", line) for line in text.splitlines())
    return [" ".join(words) for words in lines if words]


def shape(value: Any) -> Any:
    """Return the keys of JSON with the types of their values."""
    if isinstance(value, dict):
        return {KEYS.get(k, k): shape(v) for k, v in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def compact(value: Any) -> str:
    """Return JSON on one line with sorted keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
