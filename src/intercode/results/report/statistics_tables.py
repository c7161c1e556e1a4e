"""Statistics as tables, five for each row of the report: figures, splits, success by turn,
behaviour, error classes."""

from __future__ import annotations

from collections.abc import Sequence

from intercode.results.report.result_sets import OWN, Entry
from intercode.results.statistics.behaviour import behaviour, error_classes
from intercode.results.statistics.figures import Figure, figures, splits, success, success_by_turn
from intercode.results.statistics.intervals import Estimate
from intercode.results.statistics.samples import by_task, samples, turns_of
from intercode.results.tables import Cell, Table

BOUNDS = ("value", "low", "high")
_UNKNOWN = "the log does not say which actions were valid: only what observations tell counts."


def statistics_tables(entries: Sequence[Entry]) -> list[Table]:
    """Every statistic of every entry. The name of a table is ``statistics/…``, ``splits/…``,
    ``by-turn/…``, ``behaviour/…`` or ``errors/…`` with dataset, agent and model."""
    return [table for entry in entries for table in entry_tables(entry) if table.rows]


def entry_tables(entry: Entry) -> list[Table]:
    """The five tables of one entry."""
    return [_figures(entry), _splits(entry), _by_turn(entry), _behaviour(entry), _errors(entry)]


def bounds(estimate: Estimate | None) -> tuple[Cell, Cell, Cell]:
    """Value, low and high as cells."""
    return (None,) * 3 if estimate is None else (estimate.value, estimate.low, estimate.high)


def counts(estimate: Estimate | None) -> tuple[Cell, Cell, Cell]:
    """Samples, tasks and the interval's method as cells."""
    if estimate is None:
        return None, None, ""
    return estimate.samples, estimate.clusters, estimate.method


def _named(entry: Entry, kind: str, what: str) -> tuple[str, str]:
    """A table's name and title."""
    parts = [entry.dataset, entry.agent, entry.model]
    return "/".join([kind, *parts]), f"{', '.join(parts)} ({entry.told}): {what}"


def _figures(entry: Entry) -> Table:
    name, title = _named(entry, "statistics", "figures with 95 % intervals")
    rows = _rows(figures(entry.episodes))
    columns = ("figure", "unit", *BOUNDS, "samples", "tasks", "interval")
    return Table(name, title, columns, rows, tuple(_notes(entry)), tuple((b, 2) for b in BOUNDS))


def _rows(found: Sequence[Figure]) -> tuple[tuple[Cell, ...], ...]:
    return tuple((f.name, f.unit, *bounds(f.estimate), *counts(f.estimate)) for f in found)


def _splits(entry: Entry) -> Table:
    name, title = _named(entry, "splits", "success by hardness, group and tag, %")
    rows: list[tuple[Cell, ...]] = []
    for by, value, some in splits(samples(entry.episodes)):
        found = success(some)
        rows.append((by, value, *bounds(found), *counts(found)))
    columns = ("split", "by", *BOUNDS, "samples", "tasks", "interval")
    return Table(name, title, columns, tuple(rows))


def _by_turn(entry: Entry) -> Table:
    name, title = _named(entry, "by-turn", "solved within so many turns, %")
    found = enumerate(success_by_turn(entry.episodes), start=1)
    rows = tuple((turn, *bounds(estimate)) for turn, estimate in found)
    notes: tuple[str, ...] = ()
    if _scored_once(entry):
        notes = ("scored at the end of an episode only: solved counts at its last turn.",)
    return Table(name, title, ("turns", *BOUNDS), rows, notes)


def _behaviour(entry: Entry) -> Table:
    name, title = _named(entry, "behaviour", "behaviour with 95 % intervals")
    columns = ("figure", "unit", *BOUNDS, "samples", "tasks", "interval")
    return Table(name, title, columns, _rows(behaviour(entry.episodes)))


def _errors(entry: Entry) -> Table:
    name, title = _named(entry, "errors", "error classes")
    played = samples(entry.episodes)
    turns = sum(len(turns_of(t)) for t in played)
    found = error_classes(played)
    rows = tuple((e.name, e.turns, 100 * e.turns / turns, e.episodes) for e in found)
    notes = [] if any(s.valid is not None for t in played for s in t.steps) else [_UNKNOWN]
    columns = ("class", "turns", "% of turns", "episodes")
    return Table(name, title, columns, rows, tuple(notes))


def _notes(entry: Entry) -> list[str]:
    """What the figures leave out, in words."""
    played = samples(entry.episodes)
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
    if len(sizes) == 1 and sizes <= {1} and entry.source == OWN:
        notes.append("one episode a task: nothing tells how much luck is in a single task.")
    costs = [t.usage.cost for t in played if t.usage.requests]
    if costs and any(c is None for c in costs):
        unknown = sum(c is None for c in costs)
        notes.append(f"the cost of {unknown} episodes is unknown; the mean is over the others.")
    return notes


def _scored_once(entry: Entry) -> bool:
    """Whether no episode of several turns has a reward before its last turn but zeros."""
    several = [t for t in samples(entry.episodes) if len(t.steps) > 1]
    return bool(several) and not any(s.reward for t in several for s in t.steps[:-1])
