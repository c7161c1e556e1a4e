"""The report of ``audit``: kinds of findings, their table and their JSON form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from intercode.core.types import to_jsonable
from intercode.evaluation.check.findings import TaskFinding
from intercode.results.tables import Cell, Table

GOLD_KINDS = {
    "golds-differ": "the results of two golds contradict each other",
    "golds-other-form": "the results of two golds differ in order or form, or one says more",
    "empty-answer": "the gold returns no row, or prints nothing and changes nothing",
    "zero-answer": "the gold returns nothing but 0 or NULL, as many wrong answers do",
    "golds-differ-elsewhere": "two golds agree, but not in a variant of the task",
    "idle-condition": "the gold without a condition solves all variants of the task",
    "one-answer": "all tests of the task expect the same value, which a constant returns too",
}
"""Kinds of findings about golds, and their meaning."""
QUERY_KINDS = {
    "same-query": "an earlier task on the same files has the same query and another gold",
    "unnamed-value": "the gold compares with a text that the query does not contain",
    "duplicate-rows": "the gold returns a row twice, and the query does not say whether to",
    "tie-at-limit": "the query asks for the first or the most, and LIMIT cuts a tie",
}
"""Kinds of findings about queries: rules by which a query may be ambiguous, and their meaning."""
AGENT_KINDS = {
    "split-answers": "equal answers of agents have different scores",
}
"""Kinds of findings about the episodes of runs, and their meaning."""
ERROR_KINDS = {
    "gold-fails": "the gold fails or runs too long, so that nothing is known of its answer",
    "not-audited": "the sandbox failed, or a file is missing: the task could not be audited",
}
"""Kinds of tasks whose golds say nothing, and their meaning."""
KINDS = {**GOLD_KINDS, **QUERY_KINDS, **AGENT_KINDS, **ERROR_KINDS}


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The findings of an audit, in the order of the tasks.

    ``golds_run`` counts the tasks whose golds ran. ``episodes`` counts the episodes of runs that
    belong to the dataset. ``metadata`` is that of the environment (see
    ``InterCodeEnv.result_metadata``).
    """

    dataset: str
    tasks: int
    findings: tuple[TaskFinding, ...] = ()
    golds_run: int = 0
    episodes: int = 0
    metadata: Mapping[str, object] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every task could be audited."""
        return all(f.kind != "not-audited" for f in self.findings)

    def counts(self) -> dict[str, int]:
        """Return how many tasks have a finding of each kind, in the order of KINDS."""
        pairs = {(f.kind, f.task) for f in self.findings}
        totals = {kind: sum(k == kind for k, _ in pairs) for kind in KINDS}
        return {kind: n for kind, n in totals.items() if n}


def report_tables(report: AuditReport) -> list[Table]:
    """Return the table of counts by kind, and the table of all findings, if there are any."""
    conditions = ", ".join(
        f"{name} {report.metadata[name]}"
        for name in ("profile", "reward", "dataset_hash", "image", "image_digest")
        if report.metadata.get(name)
    )
    named = len({f.task for f in report.findings})
    sources = f"golds of {report.golds_run} tasks ran"
    if report.episodes:
        sources += f"; {report.episodes} episodes of runs were read"
    kinds: list[tuple[Cell, ...]] = [(kind, n, KINDS[kind]) for kind, n in report.counts().items()]
    summary = Table(
        "audit",
        f"{report.dataset}: {named} of {report.tasks} tasks have something to read",
        ("kind", "tasks", "meaning"),
        tuple(kinds),
        notes=tuple(filter(None, (conditions, sources))),
    )
    rows = tuple((f.task, f.kind, f.detail) for f in report.findings)
    found = Table("findings", "Findings", ("task", "kind", "what"), rows)
    return [summary, found] if rows else [summary]


def report_as_json(report: AuditReport) -> dict[str, Any]:
    """Return the report as JSON types, including its counts."""
    return {**to_jsonable(report), "counts": report.counts(), "complete": report.complete}
