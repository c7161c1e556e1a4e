"""Tasks × runs: which run solves which task, as one table for each dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from intercode.core.types import Trajectory
from intercode.results.report.result_sets import ResultSet
from intercode.results.statistics import metrics
from intercode.results.statistics.samples import all_samples, by_task
from intercode.results.tables import Cell, Table

MATRIX = "/matrix"
"""What the name of a matrix ends with."""
_SOLVED_BY = "solved by"


def matrix_tables(result_sets: Sequence[ResultSet]) -> list[Table]:
    """Return a table for each dataset with a row for each task and a column for each result set.

    A cell is 1 for a solved task and 0 for another, or with several epochs the share of the task's
    episodes that are solved. An error of the infrastructure counts as not solved.
    """
    datasets: dict[tuple[str, str], list[ResultSet]] = {}
    for result_set in result_sets:
        datasets.setdefault((result_set.environment, result_set.dataset), []).append(result_set)
    return [_matrix(name, rows) for (_, name), rows in datasets.items()]


def column_letters(count: int) -> list[str]:
    """Return names of columns: A to Z, then AA, AB, ..."""
    return [_letters(n) for n in range(count)]


def _letters(number: int) -> str:
    before, last = divmod(number, 26)
    return (_letters(before - 1) if before else "") + chr(ord("A") + last)


def _matrix(name: str, result_sets: Sequence[ResultSet]) -> Table:
    sides = [by_task(all_samples(e.episodes)) for e in result_sets]
    letters = column_letters(len(sides))
    rows = []
    for task in _ordered_tasks(result_sets):
        cells = [_share(side.get(task)) for side in sides]
        solved = sum(bool(cell) for cell in cells)
        rows.append((task, *cells, solved))
    notes = tuple(_notes(letters, result_sets))
    columns = ("task", *letters, _SOLVED_BY)
    digits = tuple((letter, 2) for letter in letters)
    title = f"{name}: tasks and runs, 1 where the run solves the task"
    return Table(
        f"{name}{MATRIX}", title, columns, tuple(rows), notes, digits, shared_columns=("task",)
    )


def _ordered_tasks(result_sets: Sequence[ResultSet]) -> list[str]:
    """Return all tasks in the order of their dataset."""
    index: dict[str, int] = {}
    for t in (t for e in result_sets for t in e.episodes):
        index.setdefault(t.task, t.index)
    return sorted(index, key=lambda task: (index[task], task))


def _share(episodes: Sequence[Trajectory] | None) -> Cell:
    """Return the share of episodes that are solved; a whole number if there is one episode."""
    if not episodes:
        return None
    solved = sum(map(metrics.is_solved, episodes))
    return solved if len(episodes) == 1 else solved / len(episodes)


def _notes(letters: Sequence[str], result_sets: Sequence[ResultSet]) -> Iterator[str]:
    for letter, e in zip(letters, result_sets, strict=True):
        variant = f", {e.variant}" if e.variant else ""
        yield f"{letter}: {e.agent}, {e.model}{variant} ({e.log})."
    if len({e.conditions for e in result_sets}) > 1:
        yield "the runs were made under different conditions."
