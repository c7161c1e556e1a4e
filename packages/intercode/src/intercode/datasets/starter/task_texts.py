"""Reads starter tasks that are written as text.

A line ``== name`` begins a task. It is followed by a line ``hardness:``, a line ``tags:``, the
query, and sections. A line such as ``-- gold`` begins a section::

    == sum
    hardness: easy
    tags: numbers
    Write total(numbers), which returns the sum of the numbers.
    -- gold
    def total(numbers):
        return sum(numbers)
    -- tests
    assert total([1, 2]) == 3
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from intercode.core.errors import DataError

_TITLE = re.compile(r"^== ([a-z0-9-]+)\n", re.MULTILINE)
_SECTION = re.compile(r"^-- ([a-z]+)\n", re.MULTILINE)
_HEAD = re.compile(r"hardness: (\w+)\ntags: ([^\n]+)\n(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TextTask:
    """One task. ``where`` is its location for messages. ``sections`` are texts by name, each with
    one line end at its end."""

    where: str
    name: str
    hardness: str
    tags: tuple[str, ...]
    query: str
    sections: Mapping[str, str]

    def row(self, **fields: Any) -> dict[str, Any]:
        """Return the task as a row of a suite, with more fields, or others than the text has."""
        return {
            "query": self.query,
            "gold": self.sections["gold"],
            "hardness": self.hardness,
            "tags": self.tags,
            **fields,
        }


def read_tasks(environment: str, name: str, needed: Set[str]) -> Iterator[TextTask]:
    """Yield the tasks in a file of a suite's directory ``tasks``; see ``parse_tasks``."""
    path = files("intercode.datasets").joinpath(environment, "starter", "tasks", name)
    return parse_tasks(path.read_text("utf-8"), f"starter/{environment}/tasks/{name}", needed)


def parse_tasks(text: str, name: str, needed: Set[str]) -> Iterator[TextTask]:
    """Yield the tasks in the text of one file. ``name`` is the file's name for messages.

    Raises DataError for a task that is not in the format above, or lacks a section of ``needed``.
    """
    before, *parts = _TITLE.split(text)
    if before.strip():
        raise DataError(f"{name}: {before.strip()[:40]!r} precedes the first '== name'")
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        where = f"{name}, {title}"
        first, *rest = _SECTION.split(body)
        head = _HEAD.fullmatch(first)
        sections = dict(zip(rest[::2], (text.strip() + "\n" for text in rest[1::2]), strict=True))
        if head is None or not needed <= sections.keys():
            wanted = " and ".join(f"'-- {section}'" for section in sorted(needed))
            raise DataError(f"{where}: expected hardness, tags, a query, and {wanted}")
        hardness, tags, query = head.groups()
        yield TextTask(where, title, hardness, tuple(tags.split(", ")), query.strip(), sections)
