"""The tables of the InterCode paper: success by file system and by hardness, also with the schema
given, and the strategies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from intercode.paper.logs.authors import PUBLISHED
from intercode.results.report.result_sets import (
    FIGURE_DIGITS,
    STRATEGY_FIGURES,
    ResultSet,
    failure_notes,
    mixed_conditions_warning,
    strategy_figures,
)
from intercode.results.statistics import metrics
from intercode.results.statistics.metrics import Episodes
from intercode.results.tables import Cell, Table

MODEL_ORDER = (
    "text-davinci-003",
    "gpt-3.5",
    "gpt-4",
    "text-bison-001",
    "chat-bison-001",
    "vicuna",
    "starchat",
)
"""The paper's order of models; others follow."""
PAIRED_AGENTS = ("single-turn", "try-again")
"""The two strategies that the paper compares."""
SCHEMA_GIVEN = " (schema given)"
"""The suffix of a model that was given the tables and columns (the paper's handicap)."""
_SCHEMA_SUBSET = ":schema"


@dataclass(frozen=True, slots=True)
class PaperBenchmark:
    """A benchmark of the paper and the number of tasks in each of its groups."""

    dataset: str
    title: str
    group_name: str
    sizes: Mapping[str, int]


PAPER_BENCHMARKS = (
    PaperBenchmark(
        "nl2bash",
        "Bash (NL2Bash)",
        "file system",
        {"fs_1": 60, "fs_2": 53, "fs_3": 60, "fs_4": 27},
    ),
    PaperBenchmark(
        "spider",
        "SQL (Spider dev)",
        "hardness",
        {"easy": 248, "medium": 446, "hard": 174, "extra": 166},
    ),
)


def paper_tables(result_sets: Sequence[ResultSet]) -> list[Table]:
    """Return every table of the paper that the result sets contribute to."""
    named = [_published_name(e) for e in result_sets]
    plain = [e for e in named if not e.model.endswith(SCHEMA_GIVEN)]
    given = [e for e in named if e.model.endswith(SCHEMA_GIVEN)]
    tables = [_success_table(split, plain) for split in PAPER_BENCHMARKS]
    tables += [_success_table(split, given, ", schema given") for split in PAPER_BENCHMARKS]
    tables.append(_strategies_table(named))
    return [t for t in tables if t.rows]


def _published_name(result_set: ResultSet) -> ResultSet:
    """Return a result set of ours on a ``:schema`` subset under the dataset's own name, as the
    published logs of that kind have it."""
    if not result_set.dataset.endswith(_SCHEMA_SUBSET) or result_set.model.endswith(SCHEMA_GIVEN):
        return result_set
    dataset = result_set.dataset.removesuffix(_SCHEMA_SUBSET)
    return replace(result_set, dataset=dataset, model=result_set.model + SCHEMA_GIVEN)


def _success_table(
    split: PaperBenchmark, result_sets: Sequence[ResultSet], title_suffix: str = ""
) -> Table:
    """Return Single Turn and Try Again side by side, as in the paper.

    Single is the log of one-turn episodes, or without one the first turn of Try Again.
    ``title_suffix`` is appended to the title.
    """
    rows: dict[tuple[str, str], dict[str, ResultSet]] = {}
    matching = [e for e in result_sets if e.dataset == split.dataset and e.agent in PAIRED_AGENTS]
    for result_set in matching:
        rows.setdefault((result_set.model, result_set.description), {})[result_set.agent] = (
            result_set
        )
    cells: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    borrowed: list[str] = []
    for (model, conditions), row in sorted(rows.items(), key=lambda r: _rank(r[0][0])):
        again = row.get("try-again")
        single = row.get("single-turn", again)
        rate = metrics.success_rate if "single-turn" in row else metrics.first_turn_rate
        left = by_group(split, single, rate)
        right = by_group(split, again, metrics.success_rate)
        cells.append((model, conditions, *left, *right))
        borrowed += [] if "single-turn" in row else [model]
        notes += [n for e in row.values() for n in _coverage_notes(split, e)]
    names = [*split.sizes, "all"]
    columns = ("model", "conditions", *(f"Single {n}" for n in names), *(f"Try {n}" for n in names))
    if borrowed and split.dataset == "spider" and not title_suffix:
        notes.append(
            "Single is the first turn of the Try Again log for "
            f"{', '.join(dict.fromkeys(borrowed))}; the paper has logs of one-turn episodes for "
            "gpt-3.5 and gpt-4."
        )
    title = (
        f"{split.title}{title_suffix}: success by {split.group_name}, % (Single Turn | Try Again)"
    )
    notes = list(dict.fromkeys([*notes, *mixed_conditions_warning(matching)]))
    return Table(
        f"{split.dataset}-{'schema' if title_suffix else 'success'}",
        title,
        columns,
        tuple(cells),
        tuple(notes),
    )


def _strategies_table(result_sets: Sequence[ResultSet]) -> Table:
    """Return success, turns and error % of every strategy on the paper's tasks, over all groups."""
    rows: list[tuple[Cell, ...]] = []
    used: list[ResultSet] = []
    notes = [
        "error % is the mean over episodes of the share of invalid actions, flags as recorded; "
        "in 'error % true' every turn without code is invalid and a forced submit is no action."
    ]
    for split in PAPER_BENCHMARKS:
        matching = [
            e for e in result_sets if e.dataset == split.dataset and not _is_human_session(e)
        ]
        used += matching
        for result_set in sorted(matching, key=lambda e: _rank(e.model)):
            complete = not missing_groups(split, result_set)
            figures = strategy_figures(result_set.episodes)
            label = (
                result_set.environment,
                result_set.agent,
                result_set.model,
                result_set.description,
            )
            cells = figures if complete else (None,) * len(figures)
            tasks = len({t.task for t in result_set.episodes})
            rows.append((*label, tasks, *cells))
            notes += _coverage_notes(split, result_set)
    if any(e.agent == "react" and e.conditions == PUBLISHED for e in result_sets):
        notes.append(
            "published ReAct logs are listed under gpt-3.5, but their code used text-davinci-003."
        )
    columns = ("environment", "agent", "model", "conditions", "tasks")
    names = columns + STRATEGY_FIGURES
    title = "Strategies: success, turns, error %"
    notes = list(dict.fromkeys([*notes, *mixed_conditions_warning(used)]))
    return Table("strategies", title, names, tuple(rows), tuple(notes), FIGURE_DIGITS)


def _is_human_session(result_set: ResultSet) -> bool:
    """Return whether these are the published human sessions. They have no groups and appear only
    among the logs."""
    return result_set.agent == "human" and result_set.conditions == PUBLISHED


def by_group(
    split: PaperBenchmark, result_set: ResultSet | None, rate: Callable[[Episodes], float | None]
) -> list[float | None]:
    """Return the figure for each group, then for all; the latter only if no group is missing."""
    if result_set is None:
        return [None] * (len(split.sizes) + 1)
    groups = metrics.split_episodes(result_set.episodes, metrics.group_of)
    out = [rate(groups.get(name, [])) for name in split.sizes]
    return [*out, None if missing_groups(split, result_set) else rate(result_set.episodes)]


def missing_groups(split: PaperBenchmark, result_set: ResultSet) -> list[str]:
    """Return the groups of a benchmark of which a result set has no episode."""
    groups = metrics.split_episodes(result_set.episodes, metrics.group_of)
    return [name for name in split.sizes if name not in groups]


def _coverage_notes(split: PaperBenchmark, result_set: ResultSet) -> list[str]:
    """Return notes on the tasks and groups that a row lacks."""
    label = f"{result_set.model}, {result_set.agent} ({result_set.description})"
    notes = []
    missing = missing_groups(split, result_set)
    if missing:
        notes.append(f"{label}: no {split.group_name} {', '.join(missing)}, so no figure for all.")
    groups = metrics.split_episodes(result_set.episodes, metrics.group_of)
    short = [
        f"{len({t.task for t in groups[name]})} of {size} tasks of {name}"
        for name, size in split.sizes.items()
        if name in groups and len({t.task for t in groups[name]}) < size
    ]
    if short:
        notes.append(f"{label}: {', '.join(short)}.")
    return notes + failure_notes(result_set)


def _rank(model: str) -> tuple[int, str]:
    plain = model.removesuffix(SCHEMA_GIVEN)
    return (MODEL_ORDER.index(plain) if plain in MODEL_ORDER else len(MODEL_ORDER), model)
