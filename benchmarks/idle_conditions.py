"""Finds conditions of golds that have no effect on the data: who ignores them looks right."""

from __future__ import annotations

from intercode.core.types import SUCCESS_THRESHOLD, State, Task
from intercode.environments.sql.engine import EngineSession
from intercode.environments.sql.reward import standard
from intercode.environments.sql.row_order import rank_rows
from intercode_lab.variants.sql.task import mutants

SECONDS = 30.0


def idle_conditions(task: Task, gold: str, session: EngineSession) -> list[str]:
    """Return the mutants of a gold that the standard reward scores as the gold itself."""
    rows = session.run(gold, SECONDS).rows
    if rows is None:
        return []
    ranks = rank_rows(gold, rows, lambda statement: session.run(statement, SECONDS).rows)
    state = State(rows=rows, ranks=ranks)
    idle = []
    for mutant in mutants(gold):
        result = session.run(mutant, SECONDS).rows
        if result is not None:
            score = standard(task, State(rows=(*result,)), state)
            idle += [mutant] if score.value >= SUCCESS_THRESHOLD else []
    return idle
