"""Compares drawn tasks with each other, between the splits, and with every other dataset.

Nothing is run: tasks are drawn, and their texts and initial states compared. Half of the seeds are
those of evaluations, half those of episodes (see ``FIRST_EPISODE_SEED``).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from intercode.core.errors import UsageError
from intercode.core.types import Payload, Task, tree_digest
from intercode.datasets.endless import FIRST_EPISODE_SEED
from intercode_lab.contamination.dataset_texts import task_texts
from intercode_lab.families.family import FAMILIES, Family
from intercode_lab.families.selection import FamilySelection, select_families

# Finds the text that is most like another one, by shingles: sequences of a few words.
SHINGLE_WORDS = 3
"""Words of a shingle. A sign such as ``|`` is a word."""
_DRAWN = ("families", "worlds")
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


COPY_SIMILARITY = 0.8
"""Texts that are at least so similar are copies, which are faults."""
NEAR_SIMILARITY = 0.5
"""Texts that are at least so similar are counted."""
MIN_FILE_BYTES = 64
"""Shorter files have the same content by chance."""
DEFAULT_DRAWS = 25
KINDS = ("queries", "golds")


@dataclass(slots=True)
class SourceComparison:
    """Drawn texts compared with those of one source.

    ``source``: a dataset, or ``train``. ``subject``: what is compared with it: ``all`` families, or
    the id of one. ``kind``: ``queries`` or ``golds``. ``texts``: those of the source. ``near``,
    ``copies``: drawn texts that are at least so similar to one of them. ``nearest``: the most
    similar one, to a text of ``task``.
    """

    source: str
    subject: str
    kind: str
    texts: int
    near: int = 0
    copies: int = 0
    nearest: Match = NO_MATCH
    task: str = ""

    def add(self, task: str, match: Match) -> None:
        """Count the match of a text of a task."""
        self.near += match.similarity >= NEAR_SIMILARITY
        self.copies += match.similarity >= COPY_SIMILARITY
        if match.similarity > self.nearest.similarity:
            self.nearest, self.task = match, task


@dataclass(slots=True)
class Worlds:
    """What the drawn tasks of an environment have in common.

    ``train``, ``test``: families. ``repeated``: tasks with the initial state of an earlier one,
    whatever its family and seed. ``shared_files``: files of at least ``MIN_FILE_BYTES`` that are in
    states of both splits. ``queries``: different ones.
    """

    environment: str
    train: int = 0
    test: int = 0
    tasks: int = 0
    repeated: int = 0
    shared_files: int = 0
    queries: int = 0


@dataclass(frozen=True, slots=True)
class ContaminationReport:
    """The result. ``draws``: tasks of each family. ``unavailable``: why datasets could not be
    compared. ``faults``: by the id of the task or environment."""

    draws: int
    worlds: tuple[Worlds, ...]
    datasets: tuple[SourceComparison, ...]
    splits: tuple[SourceComparison, ...]
    unavailable: dict[str, str]
    faults: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _TaskTexts:
    """The tasks of all families: their texts by kind, and the indexes of the split ``train``."""

    texts: dict[str, list[tuple[Family, str, str]]] = field(
        default_factory=lambda: {kind: [] for kind in KINDS}
    )
    train: dict[str, TextIndex] = field(
        default_factory=lambda: {kind: TextIndex() for kind in KINDS}
    )


def find_contamination(
    specs: Sequence[str] = (), draws: int = DEFAULT_DRAWS, data: Path | None = None
) -> ContaminationReport:
    """Draw tasks of every family that the specifications select, and compare them.

    ``specs``: such as ``families:bash`` (none: all families). ``draws``: tasks of each family.
    ``data``: a directory of further JSON files to compare with (None: ``INTERCODE_DATA``). Raises
    UsageError for less than 2 draws, for a specification with seeds, and if only families that
    are held out are chosen.
    """
    selections = [select_families(spec) for spec in specs or list(FAMILIES)]
    if draws < 2 or any(s.seeds is not None for s in selections):
        raise UsageError("--draw takes a number from 2, and a specification without @seed=")
    if all(family.held_out for s in selections for family in s.families):
        raise UsageError(
            "held-out families are compared with families of the split train, of which none is "
            f"chosen: take families:{selections[0].environment} as a whole"
        )
    faults: list[tuple[str, str]] = []
    collected = _TaskTexts()
    worlds = tuple(_draw(selection, draws, collected, faults) for selection in selections)
    unavailable: dict[str, str] = {}
    compared: list[SourceComparison] = []
    for source, texts in task_texts(data, unavailable, without=_DRAWN):
        index = TextIndex((source, text) for text in texts)
        compared += [
            _compare(source, "all", kind, collected.texts[kind], index, faults) for kind in KINDS
        ]
    return ContaminationReport(
        draws,
        worlds,
        tuple(compared),
        tuple(_compare_splits(collected, faults)),
        unavailable,
        tuple(faults),
    )


def world_digest(task: Task) -> str:
    """Return a digest of the initial state of a task: files, database, and hidden tests."""
    database = task.database.path.name if task.database else None
    return digest([tree_digest(task.initial_files), database, repr(Payload.of(task).tests or None)])


def digest(parts: Sequence[object]) -> str:
    """Return a digest of JSON types."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


@cache
def dataset_index() -> TextIndex:
    """Return the queries and golds of every dataset that is installed and not drawn."""
    found = task_texts(None, {}, without=_DRAWN)
    return TextIndex((source, text) for source, texts in found for text in texts)


def copy_faults(task: Task, index: TextIndex) -> Iterator[str]:
    """Yield a fault for the query and each gold of a task that another dataset has, too."""
    for text in (task.query, *task.golds):
        match = index.nearest(text)
        if match.similarity >= COPY_SIMILARITY:
            yield _copy_fault(text, match)


def _copy_fault(text: str, match: Match) -> str:
    return f"copy: {text!r} is in {match.source} as {match.text!r} ({match.similarity:.2f})"


def _draw(
    selection: FamilySelection, draws: int, collected: _TaskTexts, faults: list[tuple[str, str]]
) -> Worlds:
    """Draw tasks of an environment, add their texts, and return what their states share."""
    worlds = Worlds(selection.environment)
    seen: dict[str, str] = {}
    queries: set[str] = set()
    files: dict[str, set[bytes]] = {"train": set(), "test": set()}
    for family in selection.families:
        worlds.train += not family.held_out
        worlds.test += family.held_out
        for number in range(draws):
            seed = number // 2 + FIRST_EPISODE_SEED * (number % 2)
            task = family(seed, selection.difficulty(number // 2))
            worlds.tasks += 1
            first = seen.setdefault(world_digest(task), task.id)
            if first != task.id:
                worlds.repeated += 1
                faults.append((task.id, f"same-world: as {first}"))
            queries.add(task.query)
            files[family.split] |= _file_digests(task)
            for kind, texts in zip(KINDS, ((task.query,), task.golds), strict=True):
                collected.texts[kind] += [(family, task.id, text) for text in texts]
                if not family.held_out:
                    for text in texts:
                        collected.train[kind].add(family.id, text)
    worlds.queries = len(queries)
    worlds.shared_files = len(files["train"] & files["test"])
    if worlds.shared_files:
        what = f"shared-files: train and test have {worlds.shared_files} files in common"
        faults.append((f"families/{selection.environment}", what))
    return worlds


def _file_digests(task: Task) -> set[bytes]:
    contents = (entry.data for entry in task.initial_files if entry.kind == "file")
    return {hashlib.sha256(data).digest() for data in contents if len(data) >= MIN_FILE_BYTES}


def _compare_splits(
    collected: _TaskTexts, faults: list[tuple[str, str]]
) -> Iterator[SourceComparison]:
    """Yield the comparison of each held-out family with all families of the split train."""
    held_out = dict.fromkeys(f.id for f, _, _ in collected.texts["queries"] if f.held_out)
    for name in held_out:
        for kind in KINDS:
            texts = [row for row in collected.texts[kind] if row[0].id == name]
            yield _compare("train", name, kind, texts, collected.train[kind], faults)


def _compare(
    source: str,
    subject: str,
    kind: str,
    texts: Iterable[tuple[Family, str, str]],
    index: TextIndex,
    faults: list[tuple[str, str]],
) -> SourceComparison:
    comparison = SourceComparison(source, subject, kind, len(index))
    matches: dict[str, Match] = {}
    for _, task, text in texts:
        match = matches.get(text) or index.nearest(text)
        matches[text] = match
        comparison.add(task, match)
        if match.similarity >= COPY_SIMILARITY:
            faults.append((task, _copy_fault(text, match)))
    return comparison
