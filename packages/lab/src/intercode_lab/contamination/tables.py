"""The report of a contamination check: worlds, other datasets, and the split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from intercode.results.tables import Cell, Table
from intercode_lab.contamination.search import (
    COPY_SIMILARITY,
    MIN_FILE_BYTES,
    NEAR_SIMILARITY,
    ContaminationReport,
    SourceComparison,
)

_MAX_FAULTS = 20
"""Faults that are shown; all are in the JSON report."""


def contamination_tables(report: ContaminationReport) -> list[Table]:
    """Return a table of worlds, one of datasets, one of held-out families, and one of faults."""
    tables = [
        Table(
            "worlds",
            f"{report.draws} drawn tasks of each family, of evaluation and episode seeds in turn",
            ("environment", "train", "test", "tasks", "same world", "same files", "queries"),
            tuple(
                (w.environment, w.train, w.test, w.tasks, w.repeated, w.shared_files, w.queries)
                for w in report.worlds
            ),
            (
                "train, test: families; same world: tasks with the initial state of another one "
                "(any family, any seed)",
                f"same files: of {MIN_FILE_BYTES} bytes or more, in both "
                "splits; queries: different ones",
            ),
        ),
        Table(
            "datasets",
            "Drawn tasks compared with every other dataset",
            ("dataset", "texts", *_columns("task")),
            tuple(_dataset_rows(report.datasets)),
            (
                f"similarity: 1 is the same text; near: {NEAR_SIMILARITY} or more; copies: "
                f"{COPY_SIMILARITY} or more",
                *(f"not compared with {name}: {why}" for name, why in report.unavailable.items()),
            ),
            digits=_DIGITS,
        ),
        Table(
            "split",
            "Held-out families compared with all families of the split train",
            ("family", *_columns("most like")),
            tuple(_family_rows(report.splits)),
            digits=_DIGITS,
        ),
    ]
    if report.faults:
        title = f"{len(report.faults)} faults"
        tables.append(Table("faults", title, ("task", "what"), report.faults[:_MAX_FAULTS]))
    return tables


_DIGITS = (("query similarity", 2), ("gold similarity", 2))


def _columns(what: str) -> Sequence[str]:
    return [
        column
        for kind in ("query", "gold")
        for column in (f"{kind} similarity", f"{kind} {what}", f"near {kind}", f"{kind} copies")
    ]


def _dataset_rows(comparisons: Sequence[SourceComparison]) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each dataset: its queries and golds side by side."""
    for queries, golds in _pairs(comparisons):
        texts = queries.texts + golds.texts
        yield queries.source, texts, *_cells(queries, queries.task), *_cells(golds, golds.task)


def _family_rows(comparisons: Sequence[SourceComparison]) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each family that is held out."""
    for queries, golds in _pairs(comparisons):
        like = (_cells(c, c.nearest.source) for c in (queries, golds))
        yield queries.subject, *chain.from_iterable(like)


def _pairs(
    comparisons: Sequence[SourceComparison],
) -> Iterator[tuple[SourceComparison, SourceComparison]]:
    return zip(comparisons[::2], comparisons[1::2], strict=True)


def _cells(comparison: SourceComparison, like: str) -> tuple[Cell, ...]:
    return comparison.nearest.similarity, like or None, comparison.near, comparison.copies
