"""Tables of a grader's validity, and the lines of its report for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from intercode.results.short_text import shorten_line
from intercode.results.statistics.intervals import Estimate
from intercode.results.tables import Cell, Table
from intercode_lab.labels.agreement import Kappa, cohen_kappa, decided_pairs
from intercode_lab.labels.records import AMBIGUOUS, CORRECT, VALUES, Label
from intercode_lab.validity.grading import GradedLabel
from intercode_lab.validity.rates import GroupRates

MAX_TEXT = 100
"""Characters of an action that the table of disagreements shows."""
FILE_BOUND = "right_only_on_these_files"
"""The field of a label that is correct by the files at hand and wrong as a command."""


def rate_tables(groups: Sequence[GroupRates], weighted: bool) -> list[Table]:
    """Return the table of all rates; with ``weighted`` also by the weights of the labels."""
    columns: tuple[str, ...] = ("tasks", "rate", "labels", "of", "percent", "low", "high")
    intervals = [("percent", "low", "high")]
    if weighted:
        columns += ("weighted percent", "weighted low", "weighted high")
        intervals.append(("weighted percent", "weighted low", "weighted high"))
    rows = []
    for group in groups:
        for rate in group.rates:
            row: tuple[Cell, ...] = (group.name, rate.name, rate.hits, rate.of)
            row += _percent(rate.share)
            rows.append(row + _percent(rate.weighted) if weighted else row)
    notes = ["intervals: Wilson 95 %, with tasks as the independent units"]
    if weighted:
        notes.append("weighted: by how many trajectories each label stands for")
    title = "Grader and labels"
    return [Table("validity", title, columns, tuple(rows), tuple(notes), (), tuple(intervals))]


def summary_lines(graded: Sequence[GradedLabel]) -> list[str]:
    """Return sentences on what is in no rate, and on what limits the rates."""
    ambiguous = sum(g.label.value == AMBIGUOUS for g in graded)
    faults = [g for g in graded if g.fault]
    lines = [f"{len(graded)} labels: {sum(g.counted for g in graded)} in the rates"]
    if ambiguous:
        lines[0] += f", {ambiguous} ambiguous"
    if faults:
        lines[0] += f", {len(faults)} could not be graded"
    for text, count in Counter(g.fault for g in faults).most_common():
        first = next(g for g in faults if g.fault == text)
        more = f" and {count - 1} more" if count > 1 else ""
        lines.append(f"not graded: {first.label.task}{more}: {text}")
    if bound := [g for g in graded if g.label.extra.get(FILE_BOUND) and g.label.value == CORRECT]:
        paid = sum(g.paid for g in bound)
        lines.append(f"graded 1: {paid} of {len(bound)} that are correct only on these files")
    if differing := [g.label.task for g in graded if g.output_differs]:
        shown = ", ".join(differing[:5]) + (", ..." if len(differing) > 5 else "")
        lines.append(
            f"{len(differing)} last actions print something else than for the person who labelled "
            f"them, so that these labels may be void: {shown}"
        )
    return lines


def disagreement_table(graded: Iterable[GradedLabel]) -> Table:
    """Return the labels with which the grader disagrees."""
    columns = ("task", "verified", "label", "reward", "weight", "reason", "last action")
    rows = []
    for g in graded:
        if g.counted and not g.agrees:
            known: tuple[Cell, ...] = (g.label.task, _verified(g), g.label.value, g.reward)
            action = shorten_line(g.label.actions[-1], MAX_TEXT)
            rows.append((*known, g.label.weight, g.label.reason, action))
    digits = (("reward", 3), ("weight", 2))
    return Table("disagreements", "Disagreements", columns, tuple(rows), (), digits)


def grade_rows(graded: Iterable[GradedLabel]) -> list[dict[str, Any]]:
    """Return all graded labels as JSON objects, for a file."""
    return [
        {
            "task": g.label.task,
            "dataset": g.dataset,
            "verified": g.verified,
            "label": g.label.value,
            "reason": g.label.reason,
            "weight": g.label.weight,
            "reward": g.reward,
            "parts": dict(g.parts),
            "counted": g.counted,
            "agrees": g.agrees if g.counted else None,
            "actions": list(g.label.actions),
            "output": g.output,
            "output_differs": g.output_differs,
            "fault": g.fault or None,
            "file": g.label.file,
            "line": g.label.line,
        }
        for g in graded
    ]


def agreement_tables(pairs: Sequence[tuple[Label, Label]]) -> list[Table]:
    """Return the agreement of two people, what each said, and where they differ."""
    rows = [_kappa_row("all", cohen_kappa([(a.value, b.value) for a, b in pairs]))]
    decided = decided_pairs(pairs)
    if decided and len(decided) < len(pairs):
        kappa = cohen_kappa([(a.value, b.value) for a, b in decided])
        rows.append(_kappa_row("without ambiguous", kappa))
    notes = ("kappa: Cohen's; its interval is the large-sample one",)
    columns = ("labels", "pairs", "agreement", "by chance", "kappa", "low", "high")
    digits = (("kappa", 3), ("low", 3), ("high", 3))
    intervals = (("kappa", "low", "high"),)
    agreement = Table("agreement", "Agreement", columns, tuple(rows), notes, digits, intervals)
    counts: Counter[tuple[str, str]] = Counter((a.value, b.value) for a, b in pairs)
    crossed: list[tuple[Cell, ...]] = [
        (first, *(counts[first, second] for second in VALUES)) for first in VALUES
    ]
    cross = Table("crossed", "First file (rows) and second file", ("", *VALUES), tuple(crossed))
    differing = tuple(
        (a.task, a.value, b.value, a.reason, b.reason, shorten_line(a.actions[-1], MAX_TEXT))
        for a, b in pairs
        if a.value != b.value
    )
    heads = ("task", "first", "second", "first reason", "second reason", "last action")
    tables = [agreement, cross]
    if differing:
        tables.append(Table("differing", "Different labels", heads, differing))
    return tables


def _kappa_row(name: str, kappa: Kappa) -> tuple[Cell, ...]:
    shares = (100 * kappa.agreement, 100 * kappa.expected)
    return name, kappa.pairs, *shares, kappa.value, kappa.low, kappa.high


def _percent(estimate: Estimate | None) -> tuple[Cell, Cell, Cell]:
    if estimate is None:
        return None, None, None
    scaled = estimate.scaled(100)
    return scaled.value, scaled.low, scaled.high


def _verified(graded: GradedLabel) -> str:
    return "-" if graded.verified is None else "yes" if graded.verified else "no"
