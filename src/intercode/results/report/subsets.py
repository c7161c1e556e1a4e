"""Which rows of a table rest on the same tasks: scores on different subsets cannot be compared."""

from __future__ import annotations

from collections.abc import Sequence

from intercode.results.report.result_sets import ResultSet


def different_tasks_warning(entries: Sequence[ResultSet]) -> list[str]:
    """The warning that belongs to a column whose rows rest on different tasks; with how many tasks
    each row has, and how many are in all of them."""
    sets = [frozenset(t.task for t in entry.episodes) for entry in entries]
    if len(set(sets)) < 2:
        return []
    counts = ", ".join(
        f"{entry.agent} {entry.model} {len(tasks)}"
        for entry, tasks in zip(entries, sets, strict=True)
    )
    common = len(frozenset.intersection(*sets))
    return [
        f"{entries[0].dataset}: rows that rest on different tasks cannot be compared (tasks: "
        f"{counts}; in all of them: {common})."
    ]
