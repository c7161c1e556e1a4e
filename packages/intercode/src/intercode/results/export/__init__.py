"""Exports recorded episodes to other formats, and writes bundles that others can verify."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from intercode.core import logs
from intercode.core.errors import UsageError
from intercode.core.packages import GYM_DISTRIBUTION
from intercode.core.trajectories import trajectory_from_row, trajectory_to_row
from intercode.core.types import Trajectory
from intercode.results.export.base import ExportResult
from intercode.results.run import load_run
from intercode_sandbox.registry import Registry
from intercode_sandbox.valid_text import has_surrogates, replace_surrogates

__all__ = ["export"]

FORMATS = Registry(
    "export format",
    {
        "atif": "intercode.results.export.atif:export",
        "chat": "intercode.results.export.chat:export",
        "inspect": "intercode.results.export.inspect:export",
        "tokens": "intercode.results.export.tokens:export",
    },
    group="intercode.exports",
    owner=GYM_DISTRIBUTION,
)
"""Formats by name; each is a function ``export(episodes, out, **options) -> ExportResult``."""


def export(source: Path, to: str, out: Path, **options: object) -> ExportResult:
    """Write the episodes of a log (see ``load_run``) in another format.

    Lone surrogates, which UTF-8 cannot hold, are written as U+FFFD, and the result says so. Raises
    UnknownNameError for an unknown format, UsageError for a log without episodes and for
    what the format cannot hold, ConfigError if a package is missing.
    """
    write: Callable[..., ExportResult] = FORMATS.load(to)
    episodes: list[Trajectory] = logs.load_log(load_run(source).path)
    if not episodes:
        raise UsageError(f"{source} holds no episode to export")
    out.parent.mkdir(parents=True, exist_ok=True)
    cleaned = [_without_surrogates(t) for t in episodes]
    result = write(cleaned, out, **options)
    changed = sum(a is not b for a, b in zip(episodes, cleaned, strict=True))
    if not changed:
        return result
    note = f"{changed} episodes hold bytes that are not UTF-8: U+FFFD stands for each"
    return replace(result, omitted=(*result.omitted, note))


def _without_surrogates(episode: Trajectory) -> Trajectory:
    """Return an episode with U+FFFD for each lone surrogate; the same object if it has none."""
    text = json.dumps(trajectory_to_row(episode), ensure_ascii=False)
    if not has_surrogates(text):
        return episode
    return trajectory_from_row(json.loads(replace_surrogates(text)))
