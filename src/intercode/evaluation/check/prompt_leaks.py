"""Whether a prompt of ours holds a task: the authors' demonstrations were tasks of the benchmark,
and each of those was a recorded win."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from intercode import datasets
from intercode.core.errors import DataError, UsageError
from intercode.datasets import files

TASK_FIELDS = frozenset({"query", "question", "gold", "also", "text", "code", "sql"})
"""Keys of a dataset's rows under which a task or its answer stands."""

MIN_PHRASE_LENGTH = 12
"""Characters, blanks made single: what is shorter stands in any text by chance."""


@dataclass(frozen=True, slots=True)
class Leak:
    """A phrase of a dataset that a prompt holds."""

    prompt: str
    source: str
    phrase: str


@dataclass(frozen=True, slots=True)
class LeakReport:
    """What was compared with what, and what was found.

    ``sources`` count the phrases of each dataset or file; ``absent`` says which could not be read.
    """

    prompts: tuple[str, ...]
    sources: dict[str, int]
    unavailable: dict[str, str]
    leaks: tuple[Leak, ...]


def packaged_prompts() -> dict[str, str]:
    """The text of every prompt in the package, by name."""
    folder = resources.files("intercode.agents").joinpath("prompts")
    found = {p.name: p.read_text(encoding="utf-8") for p in folder.iterdir()}
    return {name: found[name] for name in sorted(found) if name.endswith(".txt")}


def find_leaks(prompts: dict[str, str] | None = None, data: Path | None = None) -> LeakReport:
    """Look for the tasks of every dataset in every prompt, without regard to case and blanks.

    Looked through are the datasets that can be loaded and every JSON file below ``data`` (None:
    ``INTERCODE_DATA``). Raises DataError for a file there that is no JSON.
    """
    texts = packaged_prompts() if prompts is None else prompts
    shown = {name: _normalize(text) for name, text in texts.items()}
    if data is None and (given := os.environ.get("INTERCODE_DATA")):
        data = Path(given)
    sources: dict[str, int] = {}
    absent: dict[str, str] = {}
    leaks: list[Leak] = []
    for source, found in _sources(data, absent):
        phrases = {p for text in found if len(p := _normalize(text)) >= MIN_PHRASE_LENGTH}
        sources[source] = len(phrases)
        for name, text in shown.items():
            leaks += [Leak(name, source, phrase) for phrase in sorted(phrases) if phrase in text]
    return LeakReport(tuple(texts), sources, absent, tuple(leaks))


def _sources(data: Path | None, absent: dict[str, str]) -> Iterator[tuple[str, list[str]]]:
    for name in datasets.datasets:
        try:
            tasks = datasets.load(name).tasks
        except (UsageError, OSError) as e:
            absent[name] = str(e)
            continue
        yield (
            name,
            [text for task in tasks for text in (task.query, *task.golds, task.flag) if text],
        )
    for path in sorted(data.rglob("*.json")) if data is not None else ():
        try:
            yield str(path), list(_texts(files.read_json(path)))
        except DataError as e:
            raise DataError(f"{e}: prompts cannot be compared with it") from e


def _texts(value: Any, wanted: bool = False) -> Iterator[str]:
    """Every string at or below a key of FIELDS."""
    if isinstance(value, str):
        if wanted:
            yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _texts(part, wanted or key in TASK_FIELDS)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part, wanted)


def _normalize(text: str) -> str:
    return " ".join(text.split()).casefold()
