"""The report of ``check``: kinds of findings, their tables and their JSON form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from intercode.core.types import to_jsonable
from intercode.results.short_text import shorten_line
from intercode.results.tables import Cell, Table

MAX_SHOWN = 160
"""Characters of an output or a test in a finding."""
FAULT_KINDS = {
    "empty-query": "the query of the task is empty",
    "no-gold": "the task has no solution",
    "duplicate-id": "another task has the same id",
    "duplicate-query": "an earlier task on the same files has the same query",
    "duplicate-gold": "an earlier task on the same files has the same solution",
    "time-out": "the gold does not end within the time limit of an action",
    "fails": "the gold ends with an exit status above 1, or cannot be run or scored",
    "missing-program": "the gold names a program that the image lacks",
    "missing-file": "the gold names a file that does not exist",
    "not-permitted": "the gold lacks a permission",
    "network": "the gold needs a network, and there is none",
    "gold-below-1": "the gold, played by an agent, does not score 1",
    "also-below-1": "a further gold, played by an agent, does not score 1",
    "noop-scores-1": "doing nothing scores 1",
    "volatile": "the gold gives another result when it runs again",
    "reset-differs": "two episodes begin in different states",
    "readable": "the agent can read a part of the gold before its first action",
    "lacks-program": "the image lacks a program that the dataset needs",
    "empty-table": "the gold returns nothing, and a table that it reads is empty",
    "tie-at-limit": "LIMIT leaves out rows that are tied with a row that it returns",
    "vacuous": "the gold returns no row, or only 0 or NULL, as many wrong statements do",
    "bad-files": "a file of the task is missing or cannot be read: the task could not be checked",
    "sandbox-failed": "the sandbox failed twice: the task could not be checked",
}
"""Kinds of faults and their meaning. A task with a fault is not sound."""

NOTE_KINDS = {
    "status-1": "the gold ends with exit status 1, which diff and grep return for `no` as well",
    "flag-in-files": "the task's files contain the flag in plain text, where a search finds it",
    "not-searched": "the sandbox could not be searched for golds: the image has no GNU grep",
    "golds-differ": "the golds of the task lead to different results; each of them counts as right",
    "same-gold": "an earlier task on the same database has the same gold",
    "open-order": "the gold returns several rows without ORDER BY: their order does not count",
}
"""Kinds of notes, which are findings that are not faults, and their meaning."""

_OUTPUT_PATTERNS = tuple(
    (kind, re.compile(pattern, re.MULTILINE))
    for kind, pattern in (
        ("missing-program", r"^\S+: (?:line \d+: )?([^\s:]+): command not found$"),
        ("missing-program", r"^(?:find|xargs|env): ['‘]?([\w.+-]+)['’]?: No such file"),
        ("network", r"^.*(?:[Cc]ould not resolve|[Nn]ame resolution|Network is unreachable).*$"),
        ("network", r"^.*no servers could be reached.*$"),
        ("missing-file", r"^(?:[\w./+-]+: .+|): No such file or directory$"),
        ("not-permitted", r"^[\w./+-]+: .+: (?:Permission denied|Operation not permitted)$"),
    )
)


@dataclass(frozen=True, slots=True)
class TaskFinding:
    """One thing that a check found on a task.

    ``task``: the id of the task. ``kind``: a key of ``FAULT_KINDS`` or ``NOTE_KINDS``.
    """

    task: str
    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class SearchCounts:
    """Counts of a search for golds in fresh sandboxes.

    ``sandboxes`` were searched for ``texts``. ``too_short`` texts were not searched for, because
    they could be found by chance.
    """

    sandboxes: int = 0
    texts: int = 0
    too_short: int = 0

    def __add__(self, other: SearchCounts) -> SearchCounts:
        return SearchCounts(
            self.sandboxes + other.sandboxes,
            self.texts + other.texts,
            self.too_short + other.too_short,
        )


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of checking a dataset.

    ``metadata`` is that of the environment (see ``InterCodeEnv.result_metadata``).
    ``fingerprints`` has a digest of the result of each gold that ended, to compare two checks.
    ``cached_tasks`` counts the tasks of which at least the first gold was stored in the gold cache.
    ``search`` has the counts of the search for golds in fresh sandboxes.
    """

    dataset: str
    tasks: int
    faults: tuple[TaskFinding, ...] = ()
    notes: tuple[TaskFinding, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    cached_tasks: int = 0
    search: SearchCounts = SearchCounts()

    @property
    def sound(self) -> bool:
        """Whether no task has a fault."""
        return not self.faults

    @property
    def unsound(self) -> tuple[str, ...]:
        """The ids of the tasks that have a fault, each once, in the dataset's order."""
        return tuple(dict.fromkeys(f.task for f in self.faults))

    def counts(self) -> dict[str, int]:
        """Return how many tasks have a fault of each kind, in the order of FAULT_KINDS."""
        pairs = {(f.kind, f.task) for f in self.faults}
        totals = {kind: sum(k == kind for k, _ in pairs) for kind in FAULT_KINDS}
        return {kind: n for kind, n in totals.items() if n}


def findings_in_output(task: str, output: str) -> list[TaskFinding]:
    """Return findings for the error messages in a gold's output, at most one of each kind."""
    by_kind: dict[str, TaskFinding] = {}
    for kind, pattern in _OUTPUT_PATTERNS:
        match = pattern.search(output)
        if match and not (kind == "missing-file" and "missing-program" in by_kind):
            detail = shorten_line(match.group(), MAX_SHOWN)
            by_kind.setdefault(kind, TaskFinding(task, kind, detail))
    return list(by_kind.values())


def report_tables(report: CheckReport) -> list[Table]:
    """Return the summary table by kind of fault, and tables of all faults and of all notes."""
    sound = report.tasks - len(report.unsound)
    conditions = ", ".join(
        f"{name} {report.metadata[name]}"
        for name in ("profile", "dataset_hash", "image", "image_digest", "network")
        if report.metadata.get(name)
    )
    kinds: list[tuple[Cell, ...]] = [("sound", sound, "no fault was found")]
    kinds += [(kind, n, FAULT_KINDS[kind]) for kind, n in report.counts().items()]
    summary = Table(
        "check",
        f"{report.dataset}: {sound} of {report.tasks} tasks are sound",
        ("kind", "tasks", "meaning"),
        tuple(kinds),
        notes=tuple(filter(None, (conditions, _search_note(report), _cache_note(report)))),
    )
    rows = tuple((f.task, f.kind, f.detail) for f in report.faults)
    notes = tuple((f.task, f.kind, f.detail) for f in report.notes)
    columns = ("task", "kind", "what")
    tables = [summary]
    if rows:
        tables.append(Table("faults", "Faults", columns, rows))
    if notes:
        seen = {f.kind for f in report.notes}
        meaning = tuple(f"{kind}: {text}" for kind, text in NOTE_KINDS.items() if kind in seen)
        tables.append(Table("notes", "Not faults by themselves", columns, notes, meaning))
    return tables


def _search_note(report: CheckReport) -> str:
    search = report.search
    if not search.sandboxes:
        return ""
    short = f"; {search.too_short} are too short to search for" if search.too_short else ""
    plural = "" if search.sandboxes == 1 else "es"
    return (
        f"{search.sandboxes} fresh sandbox{plural} searched for golds, tests and flags: "
        f"{search.texts} texts{short}"
    )


def _cache_note(report: CheckReport) -> str:
    if not report.cached_tasks:
        return ""
    return (
        f"the golds of {report.cached_tasks} tasks gave the same results at any time: for a day, "
        f"an episode that succeeds against these, in the gold cache, runs no gold "
        f"(--set use_gold_cache=false runs them)"
    )


def report_as_json(report: CheckReport) -> dict[str, Any]:
    """Return the report as JSON types, including its counts and whether the dataset is sound."""
    return {
        "dataset": report.dataset,
        "sound": report.sound,
        "counts": report.counts(),
        "unsound": list(report.unsound),
        **to_jsonable(report),
    }
