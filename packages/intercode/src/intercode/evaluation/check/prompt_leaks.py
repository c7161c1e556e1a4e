"""Finds tasks of datasets in the prompts of this package.

The demonstrations in the authors' prompts were tasks of the benchmark, and agents solved them.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from intercode import datasets
from intercode.core.errors import DataError, UsageError
from intercode.core.types import Dataset
from intercode.datasets import files
from intercode.datasets.starter.suites import ENVIRONMENTS

TASK_FIELDS = frozenset({"query", "question", "gold", "also", "text", "code", "sql"})
"""Keys of a dataset's rows that hold a query or an answer."""

MIN_PHRASE_LENGTH = 12
"""Shorter phrases, counted in characters after normalising blanks, are in any text by chance."""


@dataclass(frozen=True, slots=True)
class Leak:
    """A phrase of a dataset that a prompt contains."""

    prompt: str
    source: str
    phrase: str


@dataclass(frozen=True, slots=True)
class LeakReport:
    """The result of a search.

    ``sources`` counts the phrases of each dataset or file. ``unavailable`` says why others could
    not be read.
    """

    prompts: tuple[str, ...]
    sources: dict[str, int]
    unavailable: dict[str, str]
    leaks: tuple[Leak, ...]


def packaged_prompts() -> dict[str, str]:
    """Return the text of every prompt in the package, by name."""
    folder = resources.files("intercode.agents").joinpath("prompts")
    prompts = {p.name: p.read_text(encoding="utf-8") for p in folder.iterdir()}
    return {name: prompts[name] for name in sorted(prompts) if name.endswith(".txt")}


def find_leaks(prompts: dict[str, str] | None = None, data: Path | None = None) -> LeakReport:
    """Search every prompt for the tasks of every dataset, ignoring case and blanks.

    The tasks are those of the datasets that can be loaded and of every JSON file below ``data``
    (None: ``INTERCODE_DATA``). Raises DataError for a file there that is not JSON.
    """
    texts = packaged_prompts() if prompts is None else prompts
    normalized = {name: normalize(text) for name, text in texts.items()}
    sources: dict[str, int] = {}
    unavailable: dict[str, str] = {}
    leaks: list[Leak] = []
    for source, found in task_texts(data, unavailable):
        phrases = {p for text in found if len(p := normalize(text)) >= MIN_PHRASE_LENGTH}
        sources[source] = len(phrases)
        for name, text in normalized.items():
            leaks += [Leak(name, source, phrase) for phrase in sorted(phrases) if phrase in text]
    return LeakReport(tuple(texts), sources, unavailable, tuple(leaks))


def task_texts(
    data: Path | None, unavailable: dict[str, str], without: Container[str] = ()
) -> Iterator[tuple[str, list[str]]]:
    """Yield every dataset that is installed, and every JSON file below ``data``, with the queries
    and golds in it. ``data``: as in ``find_leaks``. ``unavailable``: gets the reason for each
    dataset that cannot be read. ``without``: names of datasets to leave out."""
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
            raise DataError(f"{e}: the prompts cannot be compared with it") from e


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


def normalize(text: str) -> str:
    """Return a text with single blanks and without upper case."""
    return " ".join(text.split()).casefold()
