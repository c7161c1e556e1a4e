"""Statistics as tables, five for each row of the report: figures, splits, success by turn,
behaviour, error classes."""

from __future__ import annotations

from collections.abc import Sequence

from intercode.results.report.result_sets import SOURCE_RUN, ResultSet
from intercode.results.statistics.behaviour import behaviour_figures, count_error_classes
from intercode.results.statistics.figures import (
    Figure,
    all_figures,
    subsets,
    success,
    success_by_turn,
)
from intercode.results.statistics.intervals import Estimate
from intercode.results.statistics.samples import agent_turns, by_task, independent_episodes
from intercode.results.tables import Cell, Table

BOUND_COLUMNS = ("value", "low", "high")
_UNKNOWN_VALIDITY_NOTE = (
    "the log does not say which actions were valid: only what observations tell counts."
)


def statistics_tables(entries: Sequence[ResultSet]) -> list[Table]:
    """Every statistic of every entry. The name of a table is ``statistics/…``, ``splits/…``,
    ``by-turn/…``, ``behaviour/…`` or ``errors/…`` with dataset, agent and model."""
    return [table for entry in entries for table in entry_tables(entry) if table.rows]


def entry_tables(entry: ResultSet) -> list[Table]:
    """The five tables of one entry."""
    return [
        _figures_table(entry),
        _subsets_table(entry),
        _by_turn_table(entry),
        _behaviour_table(entry),
        _errors_table(entry),
    ]


def bound_cells(estimate: Estimate | None) -> tuple[Cell, Cell, Cell]:
    """Value, low and high as cells."""
    return (None,) * 3 if estimate is None else (estimate.value, estimate.low, estimate.high)


def count_cells(estimate: Estimate | None) -> tuple[Cell, Cell, Cell]:
    """Samples, tasks and the interval's method as cells."""
    if estimate is None:
        return None, None, ""
    return estimate.samples, estimate.clusters, estimate.method


def _name_and_title(entry: ResultSet, kind: str, what: str) -> tuple[str, str]:
    """A table's name and title."""
    parts = [entry.dataset, entry.agent, entry.model]
    return "/".join([kind, *parts]), f"{', '.join(parts)} ({entry.description}): {what}"


def _figures_table(entry: ResultSet) -> Table:
    name, title = _name_and_title(entry, "statistics", "figures with 95 % intervals")
    rows = _figure_rows(all_figures(entry.episodes))
    columns = ("figure", "unit", *BOUND_COLUMNS, "samples", "tasks", "interval")
    return Table(
        name, title, columns, rows, tuple(_notes(entry)), tuple((b, 2) for b in BOUND_COLUMNS)
    )


def _figure_rows(found: Sequence[Figure]) -> tuple[tuple[Cell, ...], ...]:
    return tuple(
        (f.name, f.unit, *bound_cells(f.estimate), *count_cells(f.estimate)) for f in found
    )


def _subsets_table(entry: ResultSet) -> Table:
    name, title = _name_and_title(entry, "splits", "success by hardness, group and tag, %")
    rows: list[tuple[Cell, ...]] = []
    for by, value, some in subsets(independent_episodes(entry.episodes)):
        found = success(some)
        rows.append((by, value, *bound_cells(found), *count_cells(found)))
    columns = ("split", "by", *BOUND_COLUMNS, "samples", "tasks", "interval")
    return Table(name, title, columns, tuple(rows))


def _by_turn_table(entry: ResultSet) -> Table:
    name, title = _name_and_title(entry, "by-turn", "solved within so many turns, %")
    found = enumerate(success_by_turn(entry.episodes), start=1)
    rows = tuple((turn, *bound_cells(estimate)) for turn, estimate in found)
    notes: tuple[str, ...] = ()
    if _is_scored_at_end(entry):
        notes = ("scored at the end of an episode only: solved counts at its last turn.",)
    return Table(name, title, ("turns", *BOUND_COLUMNS), rows, notes)


def _behaviour_table(entry: ResultSet) -> Table:
    name, title = _name_and_title(entry, "behaviour", "behaviour with 95 % intervals")
    columns = ("figure", "unit", *BOUND_COLUMNS, "samples", "tasks", "interval")
    return Table(name, title, columns, _figure_rows(behaviour_figures(entry.episodes)))


def _errors_table(entry: ResultSet) -> Table:
    name, title = _name_and_title(entry, "errors", "error classes")
    played = independent_episodes(entry.episodes)
    turns = sum(len(agent_turns(t)) for t in played)
    found = count_error_classes(played)
    rows = tuple((e.name, e.turns, 100 * e.turns / turns, e.episodes) for e in found)
    notes = (
        []
        if any(s.valid is not None for t in played for s in t.steps)
        else [_UNKNOWN_VALIDITY_NOTE]
    )
    columns = ("class", "turns", "% of turns", "episodes")
    return Table(name, title, columns, rows, tuple(notes))


def _notes(entry: ResultSet) -> list[str]:
    """What the figures leave out, in words."""
    played = independent_episodes(entry.episodes)
    sizes = {len(same) for same in by_task(played).values()}
    notes = []
    if len(sizes) > 1:
        notes.append(
            f"tasks have {min(sizes)} to {max(sizes)} episodes: means weigh every episode alike, "
            "pass@k and pass^k every task that has k of them."
        )
    branches = sum(t.parent is not None for t in entry.episodes)
    if branches:
        notes.append(f"{branches} branches of other episodes are in no figure.")
    if len(sizes) == 1 and sizes <= {1} and entry.source == SOURCE_RUN:
        notes.append("one episode a task: nothing tells how much luck is in a single task.")
    costs = [t.usage.cost for t in played if t.usage.requests]
    if costs and any(c is None for c in costs):
        unknown = sum(c is None for c in costs)
        notes.append(f"the cost of {unknown} episodes is unknown; the mean is over the others.")
    return notes


def _is_scored_at_end(entry: ResultSet) -> bool:
    """Whether no episode of several turns has a reward before its last turn but zeros."""
    several = [t for t in independent_episodes(entry.episodes) if len(t.steps) > 1]
    return bool(several) and not any(s.reward for t in several for s in t.steps[:-1])
