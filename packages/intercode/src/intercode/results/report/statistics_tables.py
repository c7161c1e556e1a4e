"""Statistics as tables, at most six for each row of the report: figures, subsets, success by turn
and by restart, behaviour, error classes."""

from __future__ import annotations

from collections.abc import Sequence

from intercode.core.logs.formats import SOURCE_RUN
from intercode.results.report.result_sets import ResultSet, failure_notes
from intercode.results.statistics.behaviour import behaviour_figures, count_error_classes
from intercode.results.statistics.figures import (
    Figure,
    all_figures,
    subsets,
    success,
    success_by_restart,
    success_by_turn,
)
from intercode.results.statistics.intervals import Estimate, value_and_bounds
from intercode.results.statistics.metrics import agent_turns, earlier_turns, is_from_cache
from intercode.results.statistics.samples import all_samples, by_task, independent_episodes
from intercode.results.tables import Cell, Table

BOUND_COLUMNS = ("value", "low", "high")
_UNKNOWN_VALIDITY_NOTE = (
    "the log does not say which actions were valid: only errors in observations count."
)


def statistics_tables(result_sets: Sequence[ResultSet]) -> list[Table]:
    """Return all statistics of all result sets. A table is named ``statistics/…``, ``splits/…``,
    ``by-turn/…``, ``by-restart/…``, ``behaviour/…`` or ``errors/…`` with dataset, agent and
    model."""
    kinds = (
        _figures_table,
        _subsets_table,
        _by_turn_table,
        _by_restart_table,
        _behaviour_table,
        _errors_table,
    )
    tables = [kind(result_set) for result_set in result_sets for kind in kinds]
    return [table for table in tables if table.rows]


def count_cells(estimate: Estimate | None) -> tuple[Cell, Cell, Cell]:
    """Return samples, tasks and the interval's method as cells."""
    if estimate is None:
        return None, None, ""
    return estimate.samples, estimate.clusters, estimate.method


def _name_and_title(result_set: ResultSet, kind: str, what: str) -> tuple[str, str]:
    parts = [result_set.dataset, result_set.agent, result_set.model]
    return "/".join([kind, *parts]), f"{', '.join(parts)} ({result_set.description}): {what}"


def _figures_table(result_set: ResultSet) -> Table:
    name, title = _name_and_title(result_set, "statistics", "figures with 95 % intervals")
    rows = _figure_rows(all_figures(result_set.episodes))
    columns = ("figure", "unit", *BOUND_COLUMNS, "samples", "tasks", "interval")
    return Table(
        name, title, columns, rows, tuple(_notes(result_set)), tuple((b, 2) for b in BOUND_COLUMNS)
    )


def _figure_rows(figures: Sequence[Figure]) -> tuple[tuple[Cell, ...], ...]:
    return tuple(
        (f.name, f.unit, *value_and_bounds(f.estimate), *count_cells(f.estimate))
        for f in figures
        if f.estimate is not None
    )


def _subsets_table(result_set: ResultSet) -> Table:
    name, title = _name_and_title(result_set, "splits", "success by hardness, group and tag, %")
    rows: list[tuple[Cell, ...]] = []
    for by, value, some in subsets(all_samples(result_set.episodes)):
        estimate = success(some)
        rows.append((by, value, *value_and_bounds(estimate), *count_cells(estimate)))
    columns = ("split", "by", *BOUND_COLUMNS, "samples", "tasks", "interval")
    return Table(name, title, columns, tuple(rows))


def _by_turn_table(result_set: ResultSet) -> Table:
    name, title = _name_and_title(result_set, "by-turn", "solved within so many turns, %")
    by_turn = enumerate(success_by_turn(result_set.episodes), start=1)
    rows = tuple((turn, *value_and_bounds(estimate)) for turn, estimate in by_turn)
    notes: tuple[str, ...] = ()
    if _is_scored_at_end(result_set):
        notes = ("scored at the end of an episode only: solved counts at its last turn.",)
    return Table(name, title, ("turns", *BOUND_COLUMNS), rows, notes)


def _by_restart_table(result_set: ResultSet) -> Table:
    name, title = _name_and_title(result_set, "by-restart", "solved after so many restarts, %")
    by_restart = enumerate(success_by_restart(result_set.episodes))
    rows = tuple((restarts, *value_and_bounds(estimate)) for restarts, estimate in by_restart)
    return Table(name, title, ("restarts", *BOUND_COLUMNS), rows)


def _behaviour_table(result_set: ResultSet) -> Table:
    name, title = _name_and_title(result_set, "behaviour", "behaviour with 95 % intervals")
    columns = ("figure", "unit", *BOUND_COLUMNS, "samples", "tasks", "interval")
    return Table(name, title, columns, _figure_rows(behaviour_figures(result_set.episodes)))


def _errors_table(result_set: ResultSet) -> Table:
    name, title = _name_and_title(result_set, "errors", "error classes")
    samples = independent_episodes(result_set.episodes)
    turns = sum(len(agent_turns(t)) for t in samples)
    counts = count_error_classes(samples)
    rows = tuple((e.name, e.turns, 100 * e.turns / turns, e.episodes) for e in counts)
    notes = (
        []
        if any(s.valid is not None for t in samples for s in t.steps)
        else [_UNKNOWN_VALIDITY_NOTE]
    )
    columns = ("class", "turns", "% of turns", "episodes")
    return Table(name, title, columns, rows, tuple(notes))


def _notes(result_set: ResultSet) -> list[str]:
    """Return notes on what the figures leave out."""
    samples = all_samples(result_set.episodes)
    sizes = {len(same) for same in by_task(samples).values()}
    notes = failure_notes(result_set)
    if len(sizes) > 1:
        notes.append(
            f"tasks have {min(sizes)} to {max(sizes)} episodes: means weigh every episode alike, "
            "pass@k and pass^k every task that has k of them."
        )
    branches = sum(t.parent is not None for t in result_set.episodes)
    if branches:
        notes.append(f"{branches} branches of other episodes are in no figure.")
    if len(sizes) == 1 and sizes <= {1} and result_set.source == SOURCE_RUN:
        notes.append("one episode per task: the variation within a task is unknown.")
    costs = [t.usage.cost for t in samples if t.usage.requests]
    if costs and any(c is None for c in costs):
        unknown = sum(c is None for c in costs)
        others = "; the mean is over the others" if unknown < len(costs) else ""
        notes.append(f"the cost of {unknown} episodes is unknown{others}.")
    if cached := sum(any(map(is_from_cache, t.steps)) for t in samples):
        notes.append(
            f"{cached} episodes have answers from the cache: their tokens and cost are unknown."
        )
    return notes


def _is_scored_at_end(result_set: ResultSet) -> bool:
    """Return whether no turn before an episode's last was scored. In published logs, a reward of
    zero may mean that, too."""
    earlier = earlier_turns(result_set.episodes)
    unscored = (None,) if result_set.source == SOURCE_RUN else (None, 0)
    return bool(earlier) and all(step.score_value in unscored for step in earlier)
