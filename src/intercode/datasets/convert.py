"""Releases of other benchmarks, as their authors ship them, become files that ``datasets.load``
reads: the full data and the train splits, which the InterCode authors left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from intercode.core.registry import Registry

Converter = Callable[[Path, Path], list[Path]]
"""Takes the release's directory and the one to write to; gives the files of tasks."""

CONVERTERS = Registry(
    "release to convert",
    {
        "spider": "intercode.datasets.sql.spider:convert",
        "bird": "intercode.datasets.sql.bird:convert",
        "wikisql": "intercode.datasets.sql.wikisql:convert",
    },
)


def convert(name: str, release: Path, out: Path) -> list[Path]:
    """Convert the release of ``name`` that lies in ``release``; the files of tasks that came out,
    one a split.

    Raises UnknownNameError for a release that nobody converts, UsageError where ``release`` does
    not hold it or ``out`` is a file, DataError for files of another form.
    """
    converter: Converter = CONVERTERS.load(name)
    return converter(release.absolute(), out.absolute())
