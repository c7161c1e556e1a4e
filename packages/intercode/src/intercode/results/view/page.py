"""Assembles the page's files into one HTML document that can run no script but its own."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any


def browser_json(value: Any) -> str:
    """Return a value of JSON types as ASCII text. Infinities and NaN, which browsers' JSON lacks,
    become strings."""
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


SCRIPTS = (
    "dom.js",
    "code.js",
    "data.js",
    "table.js",
    "filters.js",
    "runs.js",
    "list.js",
    "episode.js",
    "turns.js",
    "compare.js",
    "side_by_side.js",
    "matrix.js",
    "label.js",
    "app.js",
    "live.js",
)
"""The scripts, in the order in which they run, as one script."""

CONNECT_SELF = "connect-src 'self'"
CONNECT_NONE = "connect-src 'none'"


@cache
def content_security_policy(connections: str) -> str:
    """Return the Content-Security-Policy: it allows this page's own script and style, by their
    hashes, and nothing else. ``connections`` is CONNECT_SELF or CONNECT_NONE."""
    script, style = (_hash(text) for text in (_script(), _asset("style.css")))
    return (
        f"default-src 'none'; script-src '{script}'; style-src '{style}'; {connections}; "
        "base-uri 'none'; form-action 'none'"
    )


def page_head(config: Mapping[str, Any], connections: str) -> str:
    """Return the document up to where data may follow. ``config`` is passed to the script."""
    text = _asset("index.html")
    config_json = json.dumps(config).replace(
        "<", "\\u003c"
    )  # cannot close the element that contains it
    for name, value in {
        "policy": content_security_policy(connections),
        "style": _asset("style.css"),
        "config": config_json,
    }.items():
        text = text.replace("{{" + name + "}}", value)
    return text


def page_tail() -> str:
    """Return the end of the document: the script, which can access everything before it."""
    return f"<script>{_script()}</script>\n</body>\n</html>\n"


@cache
def _script() -> str:
    return '"use strict";\n' + "".join(_asset(name) for name in SCRIPTS)


@cache
def _asset(name: str) -> str:
    return (files("intercode.results.view") / "assets" / name).read_text("utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
