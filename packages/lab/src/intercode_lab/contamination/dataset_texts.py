"""The queries and golds of all datasets that are installed."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

from intercode import datasets
from intercode.core.errors import DataError, UsageError
from intercode.core.types import Dataset
from intercode.datasets import files
from intercode.datasets.starter.suites import ENVIRONMENTS

TASK_FIELDS = frozenset({"query", "question", "gold", "also", "text", "code", "sql"})
"""Keys of a dataset's rows that hold a query or an answer."""


def task_texts(
    data: Path | None, unavailable: dict[str, str], without: Container[str] = ()
) -> Iterator[tuple[str, list[str]]]:
    """Yield every dataset that is installed, and every JSON file below ``data`` (None:
    ``INTERCODE_DATA``), with the queries and golds in it. ``unavailable``: gets the reason for each
    dataset that cannot be read. ``without``: names of datasets to leave out. Raises DataError for a
    file there that is not JSON."""
    if data is None and (given := os.environ.get("INTERCODE_DATA")):
        data = Path(given)
    specs = [
        spec
        for name in datasets.datasets
        if name not in without and datasets.is_playable_name(name)
        for spec in ([f"{name}:{e}" for e in ENVIRONMENTS] if name == "starter" else [name])
    ]
    for spec in specs:
        try:
            yield spec, _phrases(datasets.load(spec))
        except (UsageError, OSError) as e:
            unavailable[spec] = str(e)
    for path in sorted(data.rglob("*.json")) if data is not None else ():
        try:
            yield str(path), list(_texts(files.read_json(path)))
        except DataError as e:
            raise DataError(f"{e}: nothing can be compared with it") from e


def _phrases(dataset: Dataset) -> list[str]:
    return [t for task in dataset.tasks for t in (task.query, *task.golds, task.flag) if t]


def _texts(value: Any, in_field: bool = False) -> Iterator[str]:
    """Yield every string at or below a key of TASK_FIELDS."""
    if isinstance(value, str):
        if in_field:
            yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _texts(part, in_field or key in TASK_FIELDS)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part, in_field)
