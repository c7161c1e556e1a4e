"""Tables of our own runs, one per dataset, and the list of the other logs that were read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from intercode.core.logs.formats import SOURCE_RUN
from intercode.core.types import Trajectory
from intercode.environments.recorded_descriptions import description_of
from intercode.results.report.result_sets import (
    FIGURE_DIGITS,
    STRATEGY_FIGURES,
    ResultSet,
    different_tasks_warning,
    failure_notes,
    mixed_conditions_warning,
    strategy_figures,
    why_not_comparable,
)
from intercode.results.statistics import figures, metrics
from intercode.results.statistics.figures import group_rank
from intercode.results.statistics.intervals import value_and_bounds
from intercode.results.statistics.metrics import known_usage
from intercode.results.tables import Cell, Table
from intercode.results.tokens.gate import check_episodes, describe_refusals

MAX_GROUPS = 8
NO_ACTION_SHARE = 0.25
"""The share of a model's answers without an action above which a note says so."""
UPPER_BOUND = "upper bound"
"""The column of a table with errors of the infrastructure: success if all of them were solved."""
GROUPS = "/groups"
"""What the name of a table by group ends with."""
LABELS = ("agent", "model", "conditions")
SUCCESS = ("success", "low", "high")
"""The columns of success with its 95 % interval."""
SHARED_COLUMNS = (*LABELS, "tasks", "episodes", "errors")
"""What is written once above a table if all rows have the same."""


def run_tables(result_sets: Sequence[ResultSet]) -> list[Table]:
    """Return one table for each dataset of our runs, verified subsets first; if its tasks have
    groups, a second one, ``NAME/groups``, has success by group or hardness."""
    datasets: dict[tuple[str, str], list[ResultSet]] = {}
    for result_set in result_sets:
        if result_set.source == SOURCE_RUN:
            datasets.setdefault((result_set.environment, result_set.dataset), []).append(result_set)
    ordered = sorted(datasets.items(), key=lambda d: not is_verified(d[0][1]))
    return [table for (_, name), rows in ordered for table in _dataset_tables(name, rows)]


def is_verified(dataset: str) -> bool:
    """Return whether the name of a dataset or its table is that of a verified subset
    (``nl2bash:verified``)."""
    name = dataset.removesuffix(GROUPS).partition("@")[0]
    return name.partition(":")[2] == "verified"


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


def _dataset_tables(name: str, result_sets: Sequence[ResultSet]) -> list[Table]:
    rows = [_cells(e) for e in result_sets]
    known = {column for row in rows for column, cell in row.items() if cell is not None}
    columns = tuple(column for column in rows[0] if column in known or column in SUCCESS)
    notes = _failed_note(result_sets) + _action_errors_note(result_sets)
    if reason := why_not_comparable(e.episodes[0] for e in result_sets):
        notes.append(f"not comparable: {reason}.")
    notes += _no_action_notes(result_sets) + _unprotected_note(result_sets)
    notes += mixed_conditions_warning(result_sets) + different_tasks_warning(result_sets)
    notes += _refused_for_training_note(result_sets)
    table = Table(
        name,
        f"{name}: success, % [95 % interval]",
        columns,
        tuple(tuple(row[column] for column in columns) for row in rows),
        tuple(notes),
        tuple((column.name, column.digits) for column in _COLUMNS),
        (SUCCESS,),
        SHARED_COLUMNS,
        tuple(
            column.name
            for column in sorted(_COLUMNS, key=attrgetter("left_out"))
            if column.left_out
        ),
    )
    return [table, *_group_tables(name, result_sets)]


def _refused_for_training_note(result_sets: Sequence[ResultSet]) -> list[str]:
    """Return how many of the episodes with token ids are refused, and why."""
    known = [c for r in result_sets for c in check_episodes(r.episodes) if c.has_ids]
    return describe_refusals(known)


def _cells(result_set: ResultSet) -> dict[str, Cell]:
    """Return the cells of a row by their columns, None for what it does not have."""
    episodes = result_set.episodes
    labels = (result_set.agent, result_set.model, result_set.description)
    return {
        **dict(zip(LABELS, labels, strict=True)),
        **dict(zip(SUCCESS, value_and_bounds(figures.success(episodes)), strict=True)),
        **{column.name: column.figure(episodes) for column in _COLUMNS},
    }


def _scores_every_turn(episodes: Sequence[Trajectory]) -> bool:
    """Return whether an episode ended because a turn was scored, or went on after one was. If none
    went on, an only turn that submits nothing is scored as every turn is."""
    only = [t.steps[0] for t in episodes if t.steps and not metrics.is_submission(t.steps[0])]
    turns = metrics.earlier_turns(episodes) or [step for step in only if step.executed]
    return any(t.end == "solved" for t in episodes) or any(s.score is not None for s in turns)


def _tokens(episode: Trajectory) -> float | None:
    usage = known_usage(episode)
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    return usage.prompt_tokens + usage.completion_tokens


def _mean(
    episodes: Sequence[Trajectory], value_of: Callable[[Trajectory], float | None]
) -> float | None:
    mean = figures.mean_figure(episodes, value_of)
    return None if mean is None else mean.value


def _count_tasks(episodes: Sequence[Trajectory]) -> int:
    return len({t.task for t in episodes})


@dataclass(frozen=True, slots=True)
class _Column:
    """A column beside the labels and success.

    ``figure`` returns None for episodes that do not have it. ``left_out`` is the place of the
    column among those that LaTeX leaves out of a table that is too wide, 0 if it never does.
    """

    name: str
    figure: Callable[[Sequence[Trajectory]], Cell]
    digits: int = 1
    left_out: int = 0


_COLUMNS = (
    _Column(
        UPPER_BOUND,
        lambda e: metrics.upper_bound(e) if metrics.count_failed(e) else None,
        left_out=5,
    ),
    _Column(
        "first turn",
        lambda e: metrics.first_turn_rate(e) if _scores_every_turn(e) else None,
        left_out=2,
    ),
    _Column("turns", metrics.mean_turns, digits=2),
    _Column("restarts", metrics.mean_restarts),
    _Column("error %", metrics.error_rate, digits=2, left_out=1),
    _Column("tokens", lambda e: _mean(e, _tokens), digits=0),
    _Column("cost", lambda e: _mean(e, lambda t: known_usage(t).cost)),
    _Column("tasks", _count_tasks, left_out=6),
    _Column("episodes", lambda e: len(e) if len(e) > _count_tasks(e) else None, left_out=3),
    _Column("errors", metrics.count_failed, left_out=4),
    _Column("action errors", lambda e: metrics.count_action_errors(e) or None),
)


def _group_tables(name: str, result_sets: Sequence[ResultSet]) -> list[Table]:
    """Return the table of success by group or hardness; nothing if the tasks have no groups."""
    way = _group_way(result_sets)
    if way is None:
        return []
    key = attrgetter(way)
    found = {g for e in result_sets for g in metrics.split_episodes(e.episodes, key)}
    groups = sorted(found, key=group_rank)
    rows = []
    for result_set in result_sets:
        parts = metrics.split_episodes(result_set.episodes, key)
        rates = (metrics.success_rate(parts.get(g, [])) for g in groups)
        rows.append((result_set.agent, result_set.model, result_set.description, *rates))
    columns = (*LABELS, *(f"group {g}" if g in LABELS else g for g in groups))
    title = f"{name}: success by {way}, %"
    return [Table(f"{name}{GROUPS}", title, columns, tuple(rows), shared_columns=LABELS)]


def _failed_note(result_sets: Sequence[ResultSet]) -> list[str]:
    """Return the note on episodes that ended in an error of the infrastructure, if there are
    any."""
    failed = sum(metrics.count_failed(e.episodes) for e in result_sets)
    if not failed:
        return []
    if len(result_sets) == 1:
        return failure_notes(result_sets[0])
    return [
        f"errors (episodes that ended in one, counted as not solved): {failed}; the upper bound is "
        "success "
        "if all of them had been solved."
    ]


def _action_errors_note(result_sets: Sequence[ResultSet]) -> list[str]:
    """Return the note on exceptions that actions caused, with their types, if there are any."""
    errors = [t for e in result_sets for t in e.episodes if t.end == "action_error"]
    if not errors:
        return []
    rows = [t.run.get("action_error", {}) for t in errors]
    of_reward = sorted({str(row["reward"]) for row in rows if row.get("reward")})
    types = Counter(str(row.get("type", "unknown")) for row in rows)
    listed = ", ".join(f"{name} {count}" for name, count in types.most_common(MAX_GROUPS))
    origins = [f"the reward function {name} raised some" for name in of_reward]
    if not all(row.get("reward") for row in rows):
        origins.append("they may be faults of InterCode")
    return [
        f"action errors (an action caused an exception while the machine worked; not solved, and "
        f"not played again): {len(errors)} ({listed}); {', '.join(origins)}: `intercode show RUN "
        "TASK` prints the trace."
    ]


def _no_action_notes(result_sets: Sequence[ResultSet]) -> list[str]:
    """Return a note for each model of which more than a quarter of the answers had no action."""
    from intercode.agents.tool_calling import NO_CALL_REASON

    notes = []
    for e in result_sets:
        steps = [s for t in metrics.completed_episodes(e.episodes) for s in metrics.agent_turns(t)]
        without = [s for s in steps if not s.executed and s.observation]  # a reason was given
        if e.episodes[0].run.get("model") and len(without) > NO_ACTION_SHARE * len(steps):
            reasons = Counter(s.observation.partition(". ")[0].strip(". \n") for s in without)
            share = f"{100 * len(without) / len(steps):.0f} %"
            what = f"{share} of the answers of the model had no action"
            if len(without) == len(steps):
                what = "no answer of the model had an action"
            ((reason, _),) = reasons.most_common(1)
            hint = (
                "; a model that calls no tools needs an agent that reads code in texts, such as "
                "try-again"
                if NO_CALL_REASON in reason
                else ""
            )
            notes.append(
                f"{e.agent} {e.model}: {what} ({reason:.200}). "
                f"`intercode show RUN TASK --messages` prints the answers{hint}."
            )
    return notes


def _unprotected_note(result_sets: Sequence[ResultSet]) -> list[str]:
    """Return the note on verifiers that the agent's files can deceive, if there are any."""
    counts = (e.episodes[0].run.get("unprotected_verifiers") for e in result_sets)
    most = max((count for count in counts if isinstance(count, int)), default=0)
    if not most:
        return []
    return [
        f"not protected: the verifiers of {most} tasks ran among the agent's files, which can "
        "forge their rewards; a verifier with a sandbox of its own is protected "
        '(environment_mode = "separate" and artifacts in the task.toml).'
    ]


def _group_way(result_sets: Sequence[ResultSet]) -> str | None:
    """Return what gives 2 to 8 groups: group or hardness, in the order of the environment."""
    for way in description_of(result_sets[0].episodes[0].run).strata:
        values = {attrgetter(way)(t) for e in result_sets for t in e.episodes} - {None}
        if 2 <= len(values) <= MAX_GROUPS:
            return str(way)
    return None
