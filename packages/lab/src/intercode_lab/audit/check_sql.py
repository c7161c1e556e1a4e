"""Audit rules for SQL tasks: gold results that prove little."""

from __future__ import annotations

import re

from intercode.core.types import Rows, Task
from intercode.datasets.sql.base import schema_of
from intercode.environments.sql.row_order import (
    has_order_by,
    limit_cuts_tie,
    subqueries,
    without_limit,
)
from intercode.evaluation.check.findings import TaskFinding
from intercode.evaluation.check.task_runs import CodeRunner, TaskRun

_EMPTY_VALUES: frozenset[object] = frozenset({None, 0})


def audit_gold(runner: CodeRunner, index: int, run: TaskRun) -> list[TaskFinding]:
    """Return the findings about the result of a task's gold, of which ``run`` is a run."""
    task = runner.env.dataset.tasks[index]
    rows = run.state.rows if run.state is not None else None
    if rows is None or task.gold is None:
        return []
    findings: list[TaskFinding] = []
    if empty := _empty_result_text(rows):
        tables = [name for name in _tables_in_gold(task) if not _has_rows(runner, index, name)]
        if tables:
            what = (
                f"{empty}, because {', '.join(tables)} {'is' if len(tables) == 1 else 'are'} empty"
            )
            findings.append(TaskFinding(task.id, "empty-table", what))
        else:
            findings.append(TaskFinding(task.id, "vacuous", empty))
    if _limit_cuts_tie(runner, index, task.gold, rows):
        findings.append(
            TaskFinding(task.id, "tie-at-limit", "rows beside the last one are left out")
        )
    if len(rows) > 1 and not has_order_by(task.gold):
        findings.append(TaskFinding(task.id, "open-order", f"{len(rows)} rows"))
    return findings


def _limit_cuts_tie(runner: CodeRunner, index: int, gold: str, rows: Rows) -> bool:
    """Return whether LIMIT cuts a tie in the gold or in one of its independent subqueries."""

    def run(statement: str) -> Rows | None:
        return _run_statement(runner, index, statement)

    inner = [s for s in subqueries(gold) if without_limit(s) is not None]
    return limit_cuts_tie(gold, rows, run) or any(
        limit_cuts_tie(s, run(s) or (), run) for s in inner
    )


def _empty_result_text(rows: Rows) -> str:
    """Describe a result without content, or return an empty string."""
    if not rows:
        return "no row"
    if len(rows) == 1 and all(value in _EMPTY_VALUES for value in rows[0]):
        return f"nothing but {rows[0]!r}"
    return ""


def _tables_in_gold(task: Task) -> list[str]:
    """Return the tables of the schema that a gold names."""
    words = {word.lower() for word in re.findall(r"\w+", str(task.gold))}
    return [name for name in schema_of(task) if name.lower() in words]


def _has_rows(runner: CodeRunner, index: int, table: str) -> bool:
    return bool(_run_statement(runner, index, f"SELECT 1 FROM `{table}` LIMIT 1"))


def _run_statement(runner: CodeRunner, index: int, statement: str) -> Rows | None:
    state = runner.run(index, statement).state
    return None if state is None else state.rows
