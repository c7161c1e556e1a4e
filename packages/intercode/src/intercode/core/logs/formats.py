"""The formats of logs that other software has written, which plug-ins add."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intercode.core.packages import GYM_DISTRIBUTION
from intercode.core.types import Trajectory
from intercode_sandbox.registry import Registry

Stability = list[list[bool | None]]
"""For each step of each episode: whether it gives the same result on every machine. None: that is
unknown."""


@dataclass(frozen=True, slots=True)
class LogFormat:
    """A format of JSON documents with recorded episodes.

    ``document``: the type of a decoded document. ``recognises``: tells whether a document of that
    type is one of this format, by what only this format has in it. ``conditions``: what reports say
    of the episodes.
    ``parse``: returns the episodes of a document; its path may say more. Their ``run["source"]`` is
    the name of the format. ``stability``: what a document says about its steps, if it does.
    """

    document: type
    conditions: str
    parse: Callable[[Any, Path], list[Trajectory]]
    recognises: Callable[[Any], bool]
    stability: Callable[[Any, Path], Stability] | None = None


LOG_FORMATS = Registry("log format", {}, group="intercode.log_formats", owner=GYM_DISTRIBUTION)
"""Formats by the name that the episodes have as their source."""
SOURCE_RUN = "run"
"""The source of episodes that this package has recorded."""


def is_native(episode: Trajectory) -> bool:
    """Return whether an episode was recorded by this package, not by other software."""
    return episode.run.get("source") in (None, SOURCE_RUN)


def format_of(document: object) -> LogFormat | None:
    """Return the format of a decoded document: one that recognises it, else the first of its type,
    which says what is wrong with it. None if no format has its type."""
    formats: list[LogFormat] = [LOG_FORMATS.load(name) for name in LOG_FORMATS]
    fitting = [f for f in formats if isinstance(document, f.document)]
    known = [f for f in fitting if f.recognises(document)]
    return next(iter(known or fitting), None)
