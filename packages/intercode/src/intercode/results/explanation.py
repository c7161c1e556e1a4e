"""What was expected of an answer, beside what the agent left, as text for people.

It holds golds: it is shown on request, and never written to records, bundles or exports.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any

_MAX_LINES = 200
"""Lines of a text that are shown at most."""
_MIN_COLUMN = 20
_MARKS = {"equal": " ", "replace": "|", "delete": "<", "insert": ">"}


@dataclass(frozen=True, slots=True)
class TextComparison:
    """Two texts that a reward compares: that of the agent, and that of the gold. ``what`` they
    are: output, files, rows. ``cause`` says in a few words what a difference between them is, if
    the task may be unsolved by it."""

    what: str
    given: str
    expected: str
    cause: str = ""

    @property
    def is_equal(self) -> bool:
        """Whether nothing differs."""
        return self.given == self.expected

    def lines(self, width: int) -> Iterator[str]:
        """Yield the texts, shortened, side by side in at most ``width`` columns. A mark between
        them says what a line is: ``|`` for one that differs, ``<`` and ``>`` for one of one side
        only."""
        column = max(_MIN_COLUMN, (width - 3) // 2)
        left, right = (text.expandtabs().split("\n") for text in self.shortened())
        for kind, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
            for n in range(max(b - a, d - c)):
                mine, theirs = "".join(left[a:b][n : n + 1]), "".join(right[c:d][n : n + 1])
                mark = _MARKS[kind]
                if kind == "replace":
                    mark = "|" if n < min(b - a, d - c) else "<" if n < b - a else ">"
                mine, theirs = _cut_pair(mine, theirs, column) if mark == "|" else (mine, theirs)
                row = f"{_cut(mine, column):{column}} {mark} {_cut(theirs, column)}"
                yield row.rstrip()

    def shortened(self) -> tuple[str, str]:
        """Return the texts with at most some hundred lines each, of which the first that differs
        is one."""
        left, right = self.given.split("\n"), self.expected.split("\n")
        pairs = enumerate(zip(left, right, strict=False))
        equal = next((n for n, (a, b) in pairs if a != b), min(len(left), len(right)))
        first = 0 if self.is_equal else max(0, equal - _MAX_LINES // 2)
        return _some_lines(left, first), _some_lines(right, first)

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON types, with its texts shortened."""
        given, expected = self.shortened()
        return {"what": self.what, "given": given, "expected": expected, "is_equal": self.is_equal}


def _some_lines(lines: list[str], first: int) -> str:
    """Return lines from one on, as many as are shown, and how many were left out."""
    before = [f"... {first} lines before that are equal"] if first else []
    more = len(lines) - first - _MAX_LINES
    after = [f"... {more} lines more"] if more > 0 else []
    return "\n".join([*before, *lines[first : first + _MAX_LINES], *after])


def _cut_pair(mine: str, theirs: str, column: int) -> tuple[str, str]:
    """Return two lines that differ, with a long beginning that they share left out."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(mine, theirs, strict=False))
    shared = sum(1 for _ in same)
    start = max(0, shared - column // 2) if max(len(mine), len(theirs)) > column else 0
    return (f"...{mine[start:]}", f"...{theirs[start:]}") if start else (mine, theirs)


def _cut(text: str, column: int) -> str:
    return text if len(text) <= column else f"{text[: column - 3]}..."


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an episode has its score: its golds, and each thing that the reward compares.

    ``reward`` is the score of the state that its actions reach now; ``notes`` say what is special.
    ``other_form``: the result is right, but in a form that the task does not accept.
    """

    golds: tuple[str, ...]
    reward: float
    comparisons: tuple[TextComparison, ...]
    notes: tuple[str, ...] = ()
    other_form: bool = False

    @property
    def cause(self) -> str:
        """Why the task is not solved, on one line."""
        causes = [c.cause for c in self.comparisons if c.cause and not c.is_equal]
        text = ", ".join(causes) or f"score {self.reward:zg}"
        return f"right, but in another form ({self.reward:zg}): {text}" if self.other_form else text

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as JSON types."""
        return {**asdict(self), "comparisons": [c.to_json() for c in self.comparisons]}
