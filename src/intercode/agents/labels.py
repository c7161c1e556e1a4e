"""The labels with which models part what they write: ``Thought 2:``, ``Action 2:`` and so on."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LABEL = re.compile(
    r"[ \t>#*_-]*(?P<label>thought|action input|action|observation)[ \t]*+#?(?P<number>\d{1,9})?"
    r"[ \t*_]*+:[*_]*[ \t]*",
    re.IGNORECASE,
)
_FENCE = re.compile(r"`{3,}|~{3,}")
_IMAGINED_OBSERVATION = re.compile(r"\sObservation(?: \d+)?:\s")
_NEXT_ACTION = re.compile(r"\sAction(?: \d+)?:\s")


@dataclass(frozen=True, slots=True)
class Section:
    """One labelled part of an answer. ``label`` is in lower case, empty for what stands before the
    first; ``number`` is None where it has none; ``start`` is where its label begins, ``end`` where
    the next one does, both counted in characters of the whole text."""

    label: str
    number: int | None
    text: str
    start: int
    end: int


def split_sections(text: str) -> list[Section]:
    """The parts of an answer in order; without any label the whole of it.

    Labels count at the beginning of a line, with or without Markdown around them, and not inside a
    fenced block that is closed.
    """
    marks = _find_labels(text, fences=True)
    bounds = [start for start, _, _, _ in marks] + [len(text)]
    first = [Section("", None, text[: bounds[0]].strip(), 0, bounds[0])]
    rest = [
        Section(label, number, text[begins:end].strip(), start, end)
        for (start, begins, label, number), end in zip(marks, bounds[1:], strict=True)
    ]
    return [s for s in first if s.text or not rest] + rest


def _find_labels(text: str, fences: bool) -> list[tuple[int, int, str, int | None]]:
    """(where a label begins, where its text begins, label, number) for each."""
    found = []
    at, inside = 0, False
    for line in text.splitlines(keepends=True):
        match = None if inside else _LABEL.match(line)
        if match is not None:
            number = None if match["number"] is None else int(match["number"])
            found.append((at, at + match.end(), match["label"].lower(), number))
        if fences and len(_FENCE.findall(line)) % 2:
            inside = not inside
        at += len(line)
    return _find_labels(text, fences=False) if inside else found


def unfenced_action(text: str) -> str:
    """The action in an answer without fences: what stands before an observation that was imagined,
    else behind the first ``Action:`` that says anything, else before the first label."""
    parts = split_sections(text)
    acted = [s.text for s in parts if s.label.startswith("action") and s.text]
    first = parts[0].text if not parts[0].label else ""
    imagined_next = len(parts) > 1 and parts[1].label == "observation"
    said = first if not acted or (first and imagined_next) else acted[0]
    imagined = _IMAGINED_OBSERVATION.search(said)
    if imagined is not None and _NEXT_ACTION.search(said, imagined.end()):
        return said[: imagined.start()].strip()
    return said
