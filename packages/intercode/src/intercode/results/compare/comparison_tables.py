"""A comparison as sentences, tables and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from intercode.results.compare.comparison import LEVEL, POWER, Comparison, Flip, Side
from intercode.results.report.result_sets import why_not_comparable
from intercode.results.statistics.metrics import count_failed, success_rate, upper_bound
from intercode.results.tables import Cell, Table

MAX_LISTED_TASKS = 20
"""The number of tasks in a list unless all are requested."""
_FLAKY = {True: "yes", False: "no", None: "?"}


def comparison_tables(comparisons: Sequence[Comparison], *, full: bool = False) -> list[Table]:
    """Return the sides, then for each comparison its figures, flips and excluded tasks. ``full``:
    without shortening the lists."""
    sides = [comparisons[0].first, *(c.second for c in comparisons)]
    tables = [_sides_table(sides)]
    for comparison in comparisons:
        tables += [
            _figures_table(comparison),
            _flips_table(comparison, full),
            _excluded_table(comparison, full),
        ]
    return [t for t in tables if t.rows]


def comparisons_json(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Return all results as plain values; shares of success in 0..100."""
    sides = [comparisons[0].first, *(c.second for c in comparisons)]
    return {
        "sides": [_side_json(s) for s in sides],
        "comparisons": [_comparison_json(c) for c in comparisons],
    }


def verdict(comparison: Comparison) -> str:
    """Return in one sentence which side is better, if its test and its interval agree on it."""
    first, second = comparison.first.letter, comparison.second.letter
    found = comparison.figures[0].difference  # of success
    p = comparison.test.p if comparison.adjusted_p is None else comparison.adjusted_p
    low, high = (0.0 if bound is None else bound for bound in (found.low, found.high))
    size = f"{second} - {first} is {found.value:z.1f} points of success [{low:z.1f}, {high:z.1f}]"
    better, worse = (second, first) if found.value > 0 else (first, second)
    result = f"{first} and {second} cannot be told apart"
    if p < 1 - LEVEL and (low > 0 or high < 0):
        result = f"{better} is better than {worse}"
    tasks = _count_tasks(len(comparison.tasks))
    return f"{result}: {size}, on {tasks} in common (p = {_format_p(p)})."


def significance_notes(comparison: Comparison) -> list[str]:
    """Return the result of the test in sentences, with its caveats."""
    first, second = comparison.first.letter, comparison.second.letter
    adjusted = (
        ""
        if comparison.adjusted_p is None
        else f"; {_format_p(comparison.adjusted_p)} with all comparisons (Holm)"
    )
    gained, lost = _count_directions(comparison.flips)
    out = [
        f"{comparison.test.method} of success: p = {_format_p(comparison.test.p)}{adjusted}.",
        f"of {_count_tasks(len(comparison.tasks))}, {second} solves {gained} more often than "
        f"{first}, and {first} {lost} more often than {second}.",
    ]
    if not comparison.flips:
        out = ["no task is solved more often on one side."]
    tasks = _count_tasks(len(comparison.tasks))
    if comparison.detectable is None:
        out.append(f"{tasks}: too few to find any difference.")
    else:
        out.append(
            f"{tasks}: if the true difference is {comparison.detectable:.1f} points of success, a "
            f"comparison finds it with a probability of {POWER}."
        )
    return out + _caveats(comparison)


def _caveats(comparison: Comparison) -> list[str]:
    out = [f"differs, but was allowed to: {d}." for d in comparison.allowed_mismatches]
    if comparison.epochs == 1:
        out.append(
            "each side played each task once, so any flip may be chance: --epochs of `intercode "
            "eval` plays tasks several times."
        )
    elif uneven := sum(
        len(comparison.first.tasks[t]) != len(comparison.second.tasks[t]) for t in comparison.tasks
    ):
        out.append(f"{uneven} tasks have more episodes on one side: the test is approximate.")
    out += map(_errors_caveat, filter(_has_errors, (comparison.first, comparison.second)))
    return out


def _count_tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"


def _has_errors(side: Side) -> bool:
    return count_failed(side.samples) > 0


def _errors_caveat(side: Side) -> str:
    failed, samples = count_failed(side.samples), len(side.samples)
    return (
        f"{side.letter}: {failed} of {samples} episodes ended in an error and count as not solved: "
        f"success {success_rate(side.samples):.1f} %, at most {upper_bound(side.samples):.1f} %."
    )


def _sides_table(sides: Sequence[Side]) -> Table:
    rows = tuple(
        (
            s.letter,
            s.result_set.dataset,
            s.result_set.agent,
            s.result_set.model,
            len(s.tasks),
            len(s.samples),
            count_failed(s.samples),
            str(s.path),
        )
        for s in sides
    )
    columns = ("side", "dataset", "agent", "model", "tasks", "episodes", "errors", "path")
    reason = why_not_comparable(t for s in sides for t in s.result_set.episodes)
    notes = [f"not comparable with others' results: {reason}."] if reason else []
    notes += dict.fromkeys(note for side in sides for note in side.notes)
    runs = [(s.result_set.log.resolve(), s.result_set.key) for s in sides]
    for number, side in enumerate(sides):
        if (first := runs.index(runs[number])) != number:
            notes.append(f"{sides[first].letter} and {side.letter} are the same run.")
    return Table("sides", "What is compared", columns, rows, tuple(notes))


def _figures_table(comparison: Comparison) -> Table:
    a, b = comparison.first.letter, comparison.second.letter
    rows: list[tuple[Cell, ...]] = []
    for m in comparison.figures:
        d = m.difference
        rows.append((m.name, m.unit, m.first, m.second, d.value, d.low, d.high, d.clusters))
    columns = ("figure", "unit", a, b, f"{b} - {a}", "low", "high", "tasks")
    notes = [
        *significance_notes(comparison),
        *(f"also differs: {d}." for d in comparison.other_differences),
    ]
    digits = tuple((name, 2) for name in columns[2:7])
    title = f"{b} against {a}, task by task, with 95 % intervals"
    return Table(f"compare-{a}-{b}", title, columns, tuple(rows), tuple(notes), digits)


def _flips_table(comparison: Comparison, full: bool) -> Table:
    a, b = comparison.first.letter, comparison.second.letter
    listed = comparison.flips if full else _largest_flips(comparison.flips, MAX_LISTED_TASKS)
    rows = tuple(
        (f.task, 100 * f.first, 100 * f.second, b if f.second > f.first else a, _FLAKY[f.flaky])
        for f in listed
    )
    notes = _hidden_rows_note(len(comparison.flips) - len(listed))
    columns = ("task", f"{a} %", f"{b} %", "for", "flaky")
    title = f"Tasks that flipped between {a} and {b}"
    return Table(f"flips-{a}-{b}", title, columns, rows, notes)


def _excluded_table(comparison: Comparison, full: bool) -> Table:
    a, b = comparison.first.letter, comparison.second.letter
    listed = comparison.excluded if full else comparison.excluded[:MAX_LISTED_TASKS]
    rows = tuple((excluded.task, excluded.reason) for excluded in listed)
    notes = _hidden_rows_note(len(comparison.excluded) - len(listed))
    title = f"Tasks left out of {a} and {b}"
    return Table(f"left-out-{a}-{b}", title, ("task", "reason"), rows, notes)


def _largest_flips(flips: Sequence[Flip], count: int) -> list[Flip]:
    """Return the largest flips in both directions."""
    if len(flips) <= count:
        return list(flips)
    gained, lost = _count_directions(flips)
    most = max(count // 2, count - lost)
    up = min(gained, most)
    return [*flips[:up], *flips[len(flips) - min(lost, count - up) :]]


def _count_directions(flips: Sequence[Flip]) -> tuple[int, int]:
    gained = sum(f.second > f.first for f in flips)
    return gained, len(flips) - gained


def _hidden_rows_note(hidden: int) -> tuple[str, ...]:
    return (f"and {hidden} more: --all shows them.",) if hidden else ()


def _format_p(value: float) -> str:
    return f"{value:.4f}" if value >= 0.001 else f"{value:.1e}"


def _side_json(side: Side) -> dict[str, Any]:
    results = side.result_set
    return {
        "side": side.letter,
        "path": str(side.path),
        "environment": results.environment,
        "dataset": results.dataset,
        "agent": results.agent,
        "model": results.model,
        "conditions": results.conditions,
        "tasks": len(side.tasks),
        "epochs": side.epochs,
        "episodes": len(side.samples),
        "failed": count_failed(side.samples),
        "notes": list(side.notes),
        **(
            {"success": success_rate(side.samples), "upper_bound": upper_bound(side.samples)}
            if _has_errors(side)
            else {}
        ),
    }


def _comparison_json(comparison: Comparison) -> dict[str, Any]:
    return {
        "first": comparison.first.letter,
        "second": comparison.second.letter,
        "tasks": len(comparison.tasks),
        "verdict": verdict(comparison),
        "p": comparison.test.p,
        "test": comparison.test.method,
        "p_adjusted": comparison.adjusted_p,
        "detectable": comparison.detectable,
        "figures": [
            {
                "figure": m.name,
                "unit": m.unit,
                "first": m.first,
                "second": m.second,
                "difference": m.difference.value,
                "low": m.difference.low,
                "high": m.difference.high,
                "tasks": m.difference.clusters,
                "interval": m.difference.method,
            }
            for m in comparison.figures
        ],
        "flips": [
            {"task": f.task, "first": 100 * f.first, "second": 100 * f.second, "flaky": f.flaky}
            for f in comparison.flips
        ],
        "left_out": list(map(asdict, comparison.excluded)),
        "let_pass": list(map(asdict, comparison.allowed_mismatches)),
        "also_different": list(map(asdict, comparison.other_differences)),
    }
