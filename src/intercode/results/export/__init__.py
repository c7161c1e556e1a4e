"""Exports recorded episodes to other formats, and writes bundles that others can verify."""

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
"""Formats by name; each is a function ``export(episodes, out, **options) -> ExportResult``."""


def export(source: Path, to: str, out: Path, **options: object) -> ExportResult:
    """Write the episodes of a log (see ``logs.load_log``) in another format.

    Raises UnknownNameError for an unknown format, UsageError for a log without episodes and for
    what the format cannot hold, ConfigError if a package is missing.
    """
    exporter: Exporter = FORMATS.load(to)
    episodes: list[Trajectory] = logs.load_log(source)
    if not episodes:
        raise UsageError(f"{source} holds no episode to export")
    write: Callable[..., ExportResult] = exporter
    return write(episodes, out, **options)
