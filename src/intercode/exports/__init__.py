"""Recorded episodes in the formats of others, and bundles that others can verify."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from intercode import logs
from intercode.errors import UsageError
from intercode.exports.base import Exporter, Written
from intercode.registry import Registry
from intercode.types import Trajectory

__all__ = ["FORMATS", "Written", "export"]

FORMATS = Registry(
    "export format",
    {
        "atif": "intercode.exports.atif:export",
        "authors": "intercode.exports.authors:export",
        "chat": "intercode.exports.chat:export",
        "inspect": "intercode.exports.inspect_log:export",
        "tokens": "intercode.exports.tokens:export",
    },
)
"""Name -> ``export(episodes, out, **options) -> Written``."""


def export(source: Path, to: str, out: Path, **options: object) -> Written:
    """Write the episodes of a log (see ``logs.load``) in another format.

    Raises UnknownNameError for a format that is not known, UsageError for a log without episodes
    and for what the format cannot hold, ConfigError where a package is missing.
    """
    exporter: Exporter = FORMATS.load(to)
    episodes: list[Trajectory] = logs.load(source)
    if not episodes:
        raise UsageError(f"{source} holds no episode to export")
    write: Callable[..., Written] = exporter
    return write(episodes, out, **options)
