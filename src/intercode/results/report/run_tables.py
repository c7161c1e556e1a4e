"""Tables of our own runs, one per dataset, and the list of the other logs that were read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from intercode.core.types import Trajectory
from intercode.results.report.paper import (
    FIGURE_DIGITS,
    STRATEGY_FIGURES,
    failure_notes,
    mixed_conditions_warning,
    strategy_figures,
)
from intercode.results.report.result_sets import (
    SOURCE_RUN,
    ResultSet,
    different_tasks_warning,
    why_not_comparable,
)
from intercode.results.statistics import metrics
from intercode.results.statistics.figures import group_rank
from intercode.results.tables import Cell, Table

MAX_GROUPS = 8
UPPER_BOUND = "upper bound"
"""The column of a table with errors of the infrastructure: success if all of them were solved."""
FIXED_COLUMNS = (
    "agent",
    "model",
    "conditions",
    "first turn",
    "all",
    UPPER_BOUND,
    "turns",
    "error %",
    "tasks",
    "episodes",
    "failed",
)


def run_tables(result_sets: Sequence[ResultSet]) -> list[Table]:
    """Return one table for each dataset of our runs, verified subsets first."""
    datasets: dict[tuple[str, str], list[ResultSet]] = {}
    for result_set in result_sets:
        if result_set.source == SOURCE_RUN:
            datasets.setdefault((result_set.environment, result_set.dataset), []).append(result_set)
    ordered = sorted(datasets.items(), key=lambda d: not is_verified(d[0][1]))
    return [_dataset_table(name, rows) for (_, name), rows in ordered]


def is_verified(dataset: str) -> bool:
    """Return whether a dataset's name is that of a verified subset (``nl2bash:verified``)."""
    return dataset.partition("@")[0].partition(":")[2] == "verified"


def log_tables(logs: Sequence[ResultSet]) -> list[Table]:
    """Return a table with one row for each published log and each re-run; nothing if there are
    none."""
    rows: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    for result_set in logs:
        if result_set.source == SOURCE_RUN:
            continue
        episodes = result_set.episodes
        label = (result_set.log.name, result_set.environment, result_set.agent, result_set.model)
        counts = (len(episodes), sum(map(metrics.is_solved, episodes)))
        rows.append((*label, *counts, *strategy_figures(episodes)))
        notes += failure_notes(result_set)
    columns = ("log", "environment", "agent", "model", "tasks", "solved")
    notes += _different_tasks_warnings(logs)
    names = columns + STRATEGY_FIGURES
    table = Table("logs", "Logs read", names, tuple(rows), tuple(notes), FIGURE_DIGITS)
    return [table] if rows else []


def _different_tasks_warnings(logs: Sequence[ResultSet]) -> list[str]:
    """Return warnings for logs of one dataset that is not split into groups, but of different
    tasks."""
    by_dataset: dict[str, list[ResultSet]] = {}
    for result_set in logs:
        if result_set.source != SOURCE_RUN and not any(
            t.group or t.hardness for t in result_set.episodes
        ):
            by_dataset.setdefault(result_set.dataset, []).append(result_set)
    return [note for same in by_dataset.values() for note in different_tasks_warning(same)]


def _dataset_table(name: str, result_sets: Sequence[ResultSet]) -> Table:
    key = _group_key(result_sets)
    found = {g for e in result_sets for g in metrics.split_episodes(e.episodes, key)}
    groups = sorted(found, key=group_rank)
    has_try_again = any(e.agent == "try-again" for e in result_sets)
    sampled = any(_task_count(e) < len(e.episodes) for e in result_sets)
    failed = any(metrics.count_failed(e.episodes) for e in result_sets)
    rows = [_row(e, groups, key, has_try_again, sampled, failed) for e in result_sets]
    named = tuple(f"group {g}" if g in FIXED_COLUMNS else g for g in groups)
    absent = {"episodes": not sampled, UPPER_BOUND: not failed}
    last = tuple(n for n in FIXED_COLUMNS[4:] if not absent.get(n))
    columns = FIXED_COLUMNS[:3] + (FIXED_COLUMNS[3:4] if has_try_again else ()) + named + last
    notes = [n for e in result_sets for n in failure_notes(e)]
    with_image = [e for e in result_sets if e.environment != "sql"]
    if reason := why_not_comparable(e.episodes[0] for e in with_image):
        notes.append(f"not comparable: {reason}.")
    notes += mixed_conditions_warning(result_sets) + different_tasks_warning(result_sets)
    title = f"{name}: success, %"
    return Table(name, title, columns, tuple(rows), tuple(notes), FIGURE_DIGITS)


def _row(
    result_set: ResultSet,
    groups: Sequence[str],
    key: Callable[[Trajectory], str | None],
    has_try_again: bool,
    sampled: bool,
    failed: bool,
) -> tuple[Cell, ...]:
    episodes = result_set.episodes
    parts = metrics.split_episodes(episodes, key)
    first = metrics.first_turn_rate(episodes) if result_set.agent == "try-again" else None
    success, bound = metrics.success_rate(episodes), metrics.upper_bound(episodes)
    return (
        result_set.agent,
        result_set.model,
        result_set.description,
        *((first,) if has_try_again else ()),
        *(metrics.success_rate(parts.get(g, [])) for g in groups),
        success,
        *((bound if bound is not None else success,) if failed else ()),
        metrics.mean_turns(episodes),
        metrics.error_rate(episodes),
        _task_count(result_set),
        *((len(episodes),) if sampled else ()),
        metrics.count_failed(episodes),
    )


def _task_count(result_set: ResultSet) -> int:
    """Return the number of tasks, regardless of epochs."""
    return len({t.task for t in result_set.episodes})


def _group_key(result_sets: Sequence[ResultSet]) -> Callable[[Trajectory], str | None]:
    """Return the key that gives 2 to 8 groups: group or hardness, for SQL hardness first."""
    ways: list[Callable[[Trajectory], str | None]] = [lambda t: t.group, lambda t: t.hardness]
    if result_sets[0].environment == "sql":
        ways.reverse()
    for way in ways:
        if 2 <= len({way(t) for e in result_sets for t in e.episodes} - {None}) <= MAX_GROUPS:
            return way
    return lambda _: None
