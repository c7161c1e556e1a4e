"""Labels of trajectories: the record of one judgement, and JSONL files of them.

The format is described in docs/validity.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from intercode.core.decoding import bounded, decode_as, parse_json
from intercode.core.errors import DataError, UsageError

CORRECT, INCORRECT, AMBIGUOUS = "correct", "incorrect", "ambiguous"
VALUES = (CORRECT, INCORRECT, AMBIGUOUS)
"""What a label may say. Ambiguous labels are counted, but are in no rate."""


def _not_empty(actions: tuple[str, ...]) -> tuple[str, ...]:
    if not actions:
        raise ValueError("is empty: there is nothing to grade")
    return actions


@dataclass(frozen=True, slots=True)
class Label:
    """One judgement: do these actions do what the query of the task asks?

    ``actions`` are those up to the judged turn. ``output`` is what the last of them printed for the
    person who judged (None: not recorded). ``weight``: how many trajectories of a log this one
    stands for (0: none, it was chosen for another purpose). ``dataset``: where the task was played
    (empty: unknown). ``extra`` has the other fields of the line. ``file`` and ``line`` say where
    the label stands.
    """

    hint: ClassVar[str] = "; a label has task, query, actions, label"
    task: str
    query: str
    actions: Annotated[tuple[str, ...], _not_empty]
    value: Literal["correct", "incorrect", "ambiguous"] = field(metadata={"key": "label"})
    reason: str = ""
    output: str | None = None
    weight: Annotated[float, bounded(0, 1e12)] = 1.0
    dataset: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    file: str = ""
    line: int = 0

    @property
    def location(self) -> str:
        """The file and the line of the label."""
        return f"{self.file}, line {self.line}"

    @property
    def key(self) -> tuple[str, tuple[str, ...]]:
        """What two labels of one trajectory have in common."""
        return self.task, self.actions

    def as_json(self) -> dict[str, Any]:
        """Return the label as a line of a file has it."""
        row: dict[str, Any] = {
            "task": self.task,
            "query": self.query,
            "actions": list(self.actions),
            "label": self.value,
            "reason": self.reason,
        }
        if self.output is not None:
            row["output"] = self.output
        if self.weight != 1.0:
            row["weight"] = self.weight
        if self.dataset:
            row["dataset"] = self.dataset
        return row | {k: v for k, v in self.extra.items() if k not in row}


_FIELDS = (
    "task",
    "query",
    "actions",
    "label",
    "reason",
    "output",
    "weight",
    "dataset",
)


def read_labels(paths: Iterable[Path]) -> list[Label]:
    """Return the labels of files, in their order. Empty lines are skipped.

    Raises DataError for a line that is not a label, with its file and number, and UsageError for a
    file that does not exist or has no label.
    """
    labels: list[Label] = []
    for path in paths:
        try:
            lines = path.read_text(encoding="utf-8").split("\n")
        except UnicodeDecodeError as e:
            raise DataError(f"{path} is not UTF-8 text: {e}") from e
        except OSError as e:
            raise UsageError(f"cannot read the labels {path}: {e.strerror}") from e
        found = [_read_line(path, n, text) for n, text in enumerate(lines, 1) if text.strip()]
        if not found:
            raise UsageError(f"{path} has no labels: one JSON object a line is expected")
        labels += found
    return labels


def write_labels(path: Path, labels: Iterable[Label]) -> None:
    """Write labels as a file, one a line."""
    text = "".join(json.dumps(label.as_json(), ensure_ascii=False) + "\n" for label in labels)
    path.write_text(text, encoding="utf-8")


def _read_line(path: Path, number: int, text: str) -> Label:
    where = f"{path}, line {number}"
    row = parse_json(text, path, number)
    if not isinstance(row, dict):
        raise DataError(f"{where}: a label is a JSON object, not {row!r:.60}")
    extra = {k: row.pop(k) for k in list(row) if k not in _FIELDS}
    label: Label = decode_as(Label, row, where)
    return replace(label, extra=extra, file=str(path), line=number)
