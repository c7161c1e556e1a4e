"""Finds the text that is most like another one, by shingles: sequences of a few words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

SHINGLE_WORDS = 3
"""Words of a shingle. A sign such as ``|`` is a word."""
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Match:
    """A text that is like another one. ``similarity``: from 0 to 1, which is the same text apart
    from case and blanks. ``source``: where the text is from."""

    similarity: float
    source: str
    text: str


NO_MATCH = Match(0.0, "", "")


class TextIndex:
    """Texts with their sources, in which similar texts are looked up."""

    def __init__(self, texts: Iterable[tuple[str, str]] = ()) -> None:
        self._texts: list[tuple[str, str]] = []
        self._sizes: list[int] = []
        self._numbers: dict[tuple[str, ...], int] = {}
        self._postings: dict[tuple[str, ...], list[int]] = {}
        for source, text in texts:
            self.add(source, text)

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, source: str, text: str) -> None:
        """Add a text. One that is there already keeps its first source."""
        words = _words(text)
        if not words or words in self._numbers:
            return
        number = self._numbers[words] = len(self._texts)
        shingles = _shingles(words)
        self._texts.append((source, text))
        self._sizes.append(len(shingles))
        for shingle in shingles:
            self._postings.setdefault(shingle, []).append(number)

    def nearest(self, text: str) -> Match:
        """Return the most similar text: the one that has the most shingles in common, as a share
        of those of both (Jaccard)."""
        words = _words(text)
        if (same := self._numbers.get(words)) is not None:
            return Match(1.0, *self._texts[same])
        shingles = _shingles(words)
        common = Counter(n for s in shingles for n in self._postings.get(s, ()))
        best = max(
            ((c / (len(shingles) + self._sizes[n] - c), -n) for n, c in common.items()),
            default=None,
        )
        return NO_MATCH if best is None else Match(best[0], *self._texts[-best[1]])


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.casefold()))


def _shingles(words: tuple[str, ...]) -> frozenset[tuple[str, ...]]:
    count = len(words) - SHINGLE_WORDS + 1
    return frozenset(words[i : i + SHINGLE_WORDS] for i in range(count))
