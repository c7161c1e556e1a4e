"""Converts the releases of other benchmarks to files that ``datasets.load`` reads.

The releases have the full data and the train splits, which the InterCode authors left out.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from intercode_sandbox.registry import Registry

Converter = Callable[[Path, Path], list[Path]]
"""Takes the directory of a release and the output directory; returns the files of tasks."""

CONVERTERS = Registry(
    "release to convert",
    {
        "spider": "intercode.datasets.sql.spider:convert",
        "bird": "intercode.datasets.sql.bird:convert",
        "wikisql": "intercode.datasets.sql.wikisql:convert",
    },
)


def convert(name: str, release: Path, out: Path) -> list[Path]:
    """Convert the release of ``name`` in the directory ``release`` and return the files of tasks,
    one per split.

    Raises UnknownNameError for a release without a converter, UsageError if ``release`` does not
    contain it or ``out`` is a file, DataError for files of another form.
    """
    converter: Converter = CONVERTERS.load(name)
    return converter(release.absolute(), out.absolute())
