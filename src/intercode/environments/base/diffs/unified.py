"""What differs between two texts, as the hunks of a unified diff, in bounded time."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

CONTEXT_LINES = 3
"""Lines around a change that are shown as well."""
_MAX_MATCHED_LINES = 1000
"""Lines, between what both texts begin and end with, that are matched with each other, which takes
the square of their number; of more, all are shown as removed and added."""


def unified_hunks(before: str, after: str) -> str:
    """The hunks that lead from one text to another; empty where they are the same.

    There are no ``---`` and ``+++`` lines: the first character of each line tells what it is.
    """
    if before == after:
        return ""
    matched = _LineMatcher(_split_lines(before), _split_lines(after))
    out: list[str] = []
    for group in matched.get_grouped_opcodes(CONTEXT_LINES):
        first, last = group[0], group[-1]
        out.append(f"@@ -{_hunk_range(first[1], last[2])} +{_hunk_range(first[3], last[4])} @@")
        for kind, a, b, c, d in group:
            if kind == "equal":
                out += _prefix_lines(" ", matched.old[a:b])
            else:
                out += _prefix_lines("-", matched.old[a:b]) + _prefix_lines("+", matched.new[c:d])
    return "\n".join(out)


class _LineMatcher(SequenceMatcher[str]):
    """Lines matched as difflib does it, but only between what both begin and end with."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        super().__init__()
        self.old, self.new = old, new

    def get_opcodes(self) -> list[tuple[str, int, int, int, int]]:  # type: ignore[override]
        old, new = self.old, self.new
        least = min(len(old), len(new))
        head = next((i for i in range(least) if old[i] != new[i]), least)
        rest = least - head
        tail = next((i for i in range(rest) if old[-1 - i] != new[-1 - i]), rest)
        a, b = old[head : len(old) - tail], new[head : len(new) - tail]
        if max(len(a), len(b)) > _MAX_MATCHED_LINES:
            inner = [("replace", 0, len(a), 0, len(b))]
        else:
            inner = [(*code,) for code in SequenceMatcher(None, a, b).get_opcodes()]
        return [
            ("equal", 0, head, 0, head),
            *((kind, i + head, j + head, k + head, n + head) for kind, i, j, k, n in inner),
            ("equal", head + len(a), len(old), head + len(b), len(new)),
        ]


def _split_lines(text: str) -> list[str]:
    """The lines with their ends: a newline ends one, and nothing else does."""
    *whole, torn = text.split("\n")
    return [f"{line}\n" for line in whole] + ([torn] if torn else [])


def _hunk_range(start: int, stop: int) -> str:
    """Lines as a hunk's head counts them: from 1, or the line before where there are none."""
    count = stop - start
    return f"{start + 1}" if count == 1 else f"{start + (count > 0)},{count}"


def _prefix_lines(mark: str, lines: Sequence[str]) -> list[str]:
    out: list[str] = []
    for line in lines:
        out.append(mark + line.removesuffix("\n"))
        if not line.endswith("\n"):
            out.append("\\ No newline at end of file")
    return out
