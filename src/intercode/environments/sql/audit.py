"""What `check` finds on SQL tasks beyond what it finds on all: results that prove little."""

from __future__ import annotations

import re

from intercode.core.types import Rows, Task
from intercode.environments.sql.row_order import (
    asks_for_order,
    cuts_a_tie,
    subqueries,
    without_limit,
)
from intercode.evaluation.check.findings import Finding
from intercode.evaluation.check.task_runs import Play, Player

_NOTHING: frozenset[object] = frozenset({None, 0})


def look(player: Player, i: int, play: Play) -> list[Finding]:
    """What the result of task ``i``'s gold gives away. ``play`` is a run of the gold."""
    task = player.env.dataset.tasks[i]
    rows = play.state.rows if play.state is not None else None
    if rows is None or task.gold is None:
        return []
    found: list[Finding] = []
    if empty := _vacuous(rows):
        tables = [name for name in _read(task) if not _has_rows(player, i, name)]
        if tables:
            what = (
                f"{empty}, because {', '.join(tables)} {'is' if len(tables) == 1 else 'are'} empty"
            )
            found.append(Finding(task.id, "empty-table", what))
        else:
            found.append(Finding(task.id, "vacuous", empty))
    if _ties(player, i, task.gold, rows):
        found.append(Finding(task.id, "tie-at-limit", "rows beside the last one are left out"))
    if len(rows) > 1 and not asks_for_order(task.gold):
        found.append(Finding(task.id, "open-order", f"{len(rows)} rows"))
    return found


def _ties(player: Player, i: int, gold: str, rows: Rows) -> bool:
    """Whether LIMIT cuts a tie in the gold or in one of its subqueries that can stand alone."""

    def ask(statement: str) -> Rows | None:
        return _ask(player, i, statement)

    inner = [s for s in subqueries(gold) if without_limit(s) is not None]
    return cuts_a_tie(gold, rows, ask) or any(cuts_a_tie(s, ask(s) or (), ask) for s in inner)


def _vacuous(rows: Rows) -> str:
    """What a result without any content is, in words."""
    if not rows:
        return "no row"
    if len(rows) == 1 and all(value in _NOTHING for value in rows[0]):
        return f"nothing but {rows[0]!r}"
    return ""


def _read(task: Task) -> list[str]:
    """The tables of the schema that a gold names."""
    words = {word.lower() for word in re.findall(r"\w+", str(task.gold))}
    return [name for name in task.data.get("schema", {}) if name.lower() in words]


def _has_rows(player: Player, i: int, table: str) -> bool:
    return bool(_ask(player, i, f"SELECT 1 FROM `{table}` LIMIT 1"))


def _ask(player: Player, i: int, statement: str) -> Rows | None:
    state = player.play(i, statement).state
    return None if state is None else state.rows
