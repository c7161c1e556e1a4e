"""How far the rows of an answer are from those of a gold."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from intercode.core.types import Rows
from intercode.environments.base.row_comparison import (
    NormalRow,
    normalize_rows,
    overlap,
    rank_correlation,
)
from intercode.environments.sql.columns import EXTRA_COLUMNS_PER_ROW, MAX_CELLS, find_columns

ROWS_WEIGHT, VALUES_WEIGHT = 0.7, 0.3
"""What the rows, and the values wherever they stand, count in a result that is not right."""
_WORD = re.compile(r"[^\W_]+(?:[.-][^\W_]+)*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_MAX_FORM_CELLS = 100_000
"""Values of a result whose words are compared."""
_MAX_DIGITS = 3
"""Digits after the point in which an answer may round the numbers of the gold."""


@dataclass(frozen=True)
class ResultProgress:
    """A result of an agent against that of a gold. ``ranks``: the order that the gold asks for."""

    agent: Rows
    gold: Rows
    ranks: Sequence[int] | None = None

    @cached_property
    def _agent(self) -> list[NormalRow]:
        return list(normalize_rows(self.agent))

    @cached_property
    def _gold(self) -> list[NormalRow]:
        return list(normalize_rows(self.gold))

    @cached_property
    def is_other_form(self) -> bool:
        """Whether the rows are the gold's in a form that is not accepted: with further columns, in
        another order of columns, or with the same words otherwise spread over the columns.

        A number may be a text, or have fewer digits.
        """
        chosen = find_columns(self._agent, self._gold, extra=True)
        if any(self._is_right(_pick(self._agent, columns), self._gold) for columns in chosen):
            return True
        if len(self.agent) != len(self.gold):
            return False
        if max(_size(self._agent), _size(self._gold)) > _MAX_FORM_CELLS:
            return False
        digits = _most_digits(self.agent)
        ours, theirs = ([_words(row, digits) for row in rows] for rows in (self.agent, self.gold))
        return bool(ours) and all(ours) and self._is_right(ours, theirs)

    @cached_property
    def parts(self) -> Mapping[str, float]:
        """The paper's ``iou`` and ``tau`` of the rows, and ``values``: what the values of both have
        in common, as a share of their mean number."""
        best = self._row_parts(self._agent)
        if self._mapped_rows is not self._agent:
            best = max(best, self._row_parts(self._mapped_rows))
        mean = (_size(self._agent) + _size(self._gold)) / 2
        common = (_values(self._agent) & _values(self._gold)).total()
        return {"iou": best[1], "tau": best[2], "values": common / mean if mean else 0.0}

    @property
    def share(self) -> float:
        """What the two results have in common, from 0 to 1."""
        parts = self.parts
        rows = parts["iou"] * (parts["tau"] + 1) / 2
        return ROWS_WEIGHT * rows + VALUES_WEIGHT * parts["values"]

    def _row_parts(self, rows: Sequence[Hashable]) -> tuple[float, float, float]:
        """Return IoU · (τ + 1) / 2, IoU and τ."""
        iou, common = overlap(rows, self._gold)
        tau = 1.0
        if self.ranks is not None:
            tau = rank_correlation(rows, self._gold, self.ranks, common)
        return iou * (tau + 1) / 2, iou, tau

    def _is_right(self, rows: Sequence[Hashable], gold: Sequence[Hashable]) -> bool:
        iou, common = overlap(rows, gold)
        if iou < 1:
            return False
        return self.ranks is None or rank_correlation(rows, gold, self.ranks, common) == 1

    @cached_property
    def _mapped_rows(self) -> list[NormalRow]:
        """The columns of the agent that have most values in common with the gold's, in the gold's
        order. The rows as they are if there are too few columns, or too many to choose from."""
        ours, theirs = self._agent, self._gold
        surplus = len(ours[0]) - len(theirs[0]) if ours and theirs else -1
        if not 0 <= surplus <= EXTRA_COLUMNS_PER_ROW * len(theirs):
            return ours
        if len(ours[0]) * len(theirs[0]) * max(len(ours), len(theirs)) > MAX_CELLS:
            return ours
        columns = [Counter(column) for column in zip(*ours, strict=True)]
        left, chosen = set(range(len(columns))), []
        for column in zip(*theirs, strict=True):
            wanted = Counter(column)
            best = max(sorted(left), key=lambda n: (columns[n] & wanted).total())
            left.remove(best)
            chosen.append(best)
        return _pick(ours, chosen)


def _pick(rows: Iterable[NormalRow], columns: Sequence[int]) -> list[NormalRow]:
    return [tuple(row[n] for n in columns) for row in rows]


def _size(rows: Sequence[NormalRow]) -> int:
    return sum(len(row) for row in rows)


def _values(rows: Sequence[NormalRow]) -> Counter[Hashable]:
    return Counter(value for row in rows for value in row)


def _most_digits(rows: Rows) -> int:
    """Return how many digits after the point the numbers of an answer have, if it may have rounded
    them, else more than it may."""
    texts = [str(v) for row in rows for v in row if isinstance(v, float | Decimal)]
    digits = max((len(text.partition(".")[2]) for text in texts), default=0)
    return digits if 1 <= digits <= _MAX_DIGITS else 10


def _words(row: Sequence[object], digits: int) -> Hashable:
    """Return the words of a row in any order, and its numbers rounded."""
    words: Counter[Hashable] = Counter()
    for value in row:
        if value is None:
            words[None] += 1
            continue
        text = str(value)
        if _NUMBER.fullmatch(text):
            words[round(float(text), digits)] += 1
        else:
            words.update(
                round(float(w), digits) if _NUMBER.fullmatch(w) else w.casefold()
                for w in _WORD.findall(text)
            )
    return frozenset(words.items())
