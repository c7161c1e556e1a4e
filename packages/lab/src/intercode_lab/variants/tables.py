"""Tables of what holds in variants."""

from __future__ import annotations

from collections.abc import Sequence

from intercode.results.short_text import shorten_line
from intercode.results.statistics.intervals import value_and_bounds
from intercode.results.tables import Cell, Table
from intercode_lab.variants.holding import HoldingReport, task_rows
from intercode_lab.variants.tasks import TaskVariants

_MAX_TEXT = 100  # characters of an action


def holding_tables(report: HoldingReport) -> list[Table]:
    """Return the figure, the tasks whose solutions do not hold, and the tasks without variants."""
    estimate = report.share
    value, low, high = value_and_bounds(estimate.scaled(100.0) if estimate else None)
    played = [e for e in report.episodes if e.played]
    row: tuple[Cell, ...] = (
        report.solved,
        report.unsolved,
        len(report.episodes) - len(played),
        len(played),
        sum(e.holds for e in played),
        value,
        low,
        high,
    )
    columns = (
        "solved",
        "not solved now",
        "without variants",
        "played",
        "hold",
        "percent",
        "low",
        "high",
    )
    alike = sum(t.alike for t in report.tasks if t.seeds)
    notes = (
        f"{report.dataset}: a solution holds if its actions solve all variants of its task, "
        f"{report.count} if there are so many; the interval has tasks as the independent units",
        f"{sum(bool(t.seeds) for t in report.tasks)} tasks have variants; in {alike} of them the "
        "gold does the same in all",
    )
    title = "Does it hold elsewhere?"
    intervals = (("percent", "low", "high"),)
    tables = [Table("variants", title, columns, (row,), notes, (), intervals)]
    rows = tuple(r for r in task_rows(report.episodes) if r[1] != r[2])
    if rows:
        heads = ("task", "solved", "hold")
        tables.append(Table("tasks", "Tasks whose solutions do not all hold", heads, rows))
    failing = tuple(
        (e.task, e.epoch, f"{len(e.held)} of {len(e.seeds)}", show_action(e.actions[-1]))
        for e in played
        if not e.holds and e.actions
    )
    if failing:
        shown = ("task", "epoch", "holds in", "last action")
        tables.append(Table("episodes", "Solutions that do not hold", shown, failing))
    return [*tables, *_missing_table(report.tasks)]


def variant_tables(tasks: Sequence[TaskVariants], count: int) -> list[Table]:
    """Return how many tasks have sound variants, the replaced seeds, and the tasks without any."""
    full = [t for t in tasks if len(t.seeds) == count]
    some = [t for t in tasks if 0 < len(t.seeds) < count]
    rows = (
        (f"{count} sound variants", len(full)),
        ("fewer", len(some)),
        ("none", sum(not t.seeds for t in tasks)),
        ("variants in which the gold does the same", sum(t.alike for t in full + some)),
    )
    tables = [Table("variants", "Variants", ("tasks with", "tasks"), rows)]
    replaced = tuple((t.task, r.seed, r.reason) for t in tasks if t.seeds for r in t.replaced)
    if replaced:
        heads = ("task", "seed", "why")
        tables.append(Table("replaced", "Seeds that the next ones replace", heads, replaced))
    return [*tables, *_missing_table(tasks)]


def show_action(action: str) -> str:
    """Return an action as one short line of a table."""
    return shorten_line(action, _MAX_TEXT)


def _missing_table(tasks: Sequence[TaskVariants]) -> list[Table]:
    rows = tuple((t.task, t.reason) for t in tasks if not t.seeds)
    return [Table("none", "Tasks without variants", ("task", "why"), rows)] if rows else []
