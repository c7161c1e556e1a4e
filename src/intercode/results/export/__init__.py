"""Recorded episodes in the formats of others, and bundles that others can verify."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from intercode.core import logs
from intercode.core.errors import UsageError
from intercode.core.registry import Registry
from intercode.core.types import Trajectory
from intercode.results.export.base import Exporter, ExportResult

__all__ = ["FORMATS", "ExportResult", "export"]

FORMATS = Registry(
    "export format",
    {
        "atif": "intercode.results.export.atif:export",
        "authors": "intercode.results.export.authors:export",
        "chat": "intercode.results.export.chat:export",
        "inspect": "intercode.results.export.inspect:export",
        "tokens": "intercode.results.export.tokens:export",
    },
)
"""Name -> ``export(episodes, out, **options) -> Written``."""


def export(source: Path, to: str, out: Path, **options: object) -> ExportResult:
    """Write the episodes of a log (see ``logs.load``) in another format.

    Raises UnknownNameError for a format that is not known, UsageError for a log without episodes
    and for what the format cannot hold, ConfigError where a package is missing.
    """
    exporter: Exporter = FORMATS.load(to)
    episodes: list[Trajectory] = logs.load_log(source)
    if not episodes:
        raise UsageError(f"{source} holds no episode to export")
    write: Callable[..., ExportResult] = exporter
    return write(episodes, out, **options)
