"""The tables of the InterCode paper: success by file system and by hardness, also with the schema
given, and the strategies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from intercode.results.report.result_sets import SOURCE_PUBLISHED, ResultSet
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
"""The two strategies that the paper sets side by side."""
SCHEMA_GIVEN = " (schema given)"
"""What the name of a model ends with that was told the tables and columns, the paper's handicap."""
_SCHEMA_SUBSET = ":schema"


@dataclass(frozen=True, slots=True)
class PaperBenchmark:
    """A benchmark of the paper and how many tasks each of its groups has."""

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


def paper_tables(entries: Sequence[ResultSet]) -> list[Table]:
    """Every table of the paper that the entries hold something for."""
    named = [_published_name(e) for e in entries]
    plain = [e for e in named if not e.model.endswith(SCHEMA_GIVEN)]
    given = [e for e in named if e.model.endswith(SCHEMA_GIVEN)]
    tables = [_success_table(split, plain) for split in PAPER_BENCHMARKS]
    tables += [_success_table(split, given, ", schema given") for split in PAPER_BENCHMARKS]
    tables.append(_strategies_table(named))
    return [t for t in tables if t.rows]


def _published_name(entry: ResultSet) -> ResultSet:
    """An entry of ours on a subset that is the whole dataset with the schema in the prompt, under
    the dataset's own name, as published logs of that kind are."""
    if not entry.dataset.endswith(_SCHEMA_SUBSET) or entry.model.endswith(SCHEMA_GIVEN):
        return entry
    dataset = entry.dataset.removesuffix(_SCHEMA_SUBSET)
    return replace(entry, dataset=dataset, model=entry.model + SCHEMA_GIVEN)


def _success_table(split: PaperBenchmark, entries: Sequence[ResultSet], told: str = "") -> Table:
    """Single Turn and Try Again side by side, as the paper has them. ``told``: for the title.

    Single is the log of one-turn episodes; where there is none, the first turn of Try Again.
    """
    rows: dict[tuple[str, str], dict[str, ResultSet]] = {}
    mine = [e for e in entries if e.dataset == split.dataset and e.agent in PAIRED_AGENTS]
    for entry in mine:
        rows.setdefault((entry.model, entry.description), {})[entry.agent] = entry
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
    if borrowed and split.dataset == "spider" and not told:
        notes.append(
            "Single is the first turn of the Try Again log for "
            f"{', '.join(dict.fromkeys(borrowed))}; the paper has logs of one-turn episodes for "
            "gpt-3.5 and gpt-4."
        )
    title = f"{split.title}{told}: success by {split.group_name}, % (Single Turn | Try Again)"
    notes = list(dict.fromkeys([*notes, *mixed_conditions_warning(mine)]))
    return Table(
        f"{split.dataset}-{'schema' if told else 'success'}",
        title,
        columns,
        tuple(cells),
        tuple(notes),
    )


def _strategies_table(entries: Sequence[ResultSet]) -> Table:
    """Success, turns and error % of every strategy on the paper's tasks, over all groups."""
    rows: list[tuple[Cell, ...]] = []
    used: list[ResultSet] = []
    notes = [
        "error % is the mean over episodes of the share of invalid actions, flags as recorded; "
        "in 'error % true' every turn without code is invalid and a forced submit is no action."
    ]
    for split in PAPER_BENCHMARKS:
        mine = [e for e in entries if e.dataset == split.dataset and not _is_human_session(e)]
        used += mine
        for entry in sorted(mine, key=lambda e: _rank(e.model)):
            whole = not missing_groups(split, entry)
            figures = (
                metrics.success_rate(entry.episodes),
                metrics.mean_turns(entry.episodes),
                metrics.error_rate(entry.episodes),
                metrics.error_rate(entry.episodes, metrics.true_error_share),
            )
            label = (entry.environment, entry.agent, entry.model, entry.description)
            shown = figures if whole else (None,) * len(figures)
            tasks = len({t.task for t in metrics.completed_episodes(entry.episodes)})
            rows.append((*label, tasks, *shown))
            notes += _coverage_notes(split, entry)
    if any(e.agent == "react" and e.conditions == SOURCE_PUBLISHED for e in entries):
        notes.append("published ReAct logs stand under gpt-3.5; their code asked text-davinci-003.")
    columns = ("environment", "agent", "model", "conditions", "tasks")
    figures_of = ("success %", "turns", "error %", "error % true")
    digits = (("turns", 2), ("error %", 2), ("error % true", 2))
    title = "Strategies: success, turns, error %"
    notes = list(dict.fromkeys([*notes, *mixed_conditions_warning(used)]))
    return Table("strategies", title, columns + figures_of, tuple(rows), tuple(notes), digits)


def _is_human_session(entry: ResultSet) -> bool:
    """The published human sessions name no group at all: they stand among the logs only."""
    return entry.agent == "human" and entry.conditions == SOURCE_PUBLISHED


def by_group(
    split: PaperBenchmark, entry: ResultSet | None, rate: Callable[[Episodes], float | None]
) -> list[float | None]:
    """The figure for each group, then for all; the latter only where no group is missing."""
    if entry is None:
        return [None] * (len(split.sizes) + 1)
    groups = metrics.split_episodes(entry.episodes, metrics.group_of)
    out = [rate(groups.get(name, [])) for name in split.sizes]
    return [*out, None if missing_groups(split, entry) else rate(entry.episodes)]


def missing_groups(split: PaperBenchmark, entry: ResultSet) -> list[str]:
    """The groups of a benchmark that an entry has no episode of."""
    groups = metrics.split_episodes(metrics.completed_episodes(entry.episodes), metrics.group_of)
    return [name for name in split.sizes if name not in groups]


def _coverage_notes(split: PaperBenchmark, entry: ResultSet) -> list[str]:
    """What a row rests on, in words, where that is not every task once."""
    who = f"{entry.model}, {entry.agent} ({entry.description})"
    notes = []
    gone = missing_groups(split, entry)
    if gone:
        notes.append(f"{who}: no {split.group_name} {', '.join(gone)}, so nothing for all.")
    groups = metrics.split_episodes(metrics.completed_episodes(entry.episodes), metrics.group_of)
    short = [
        f"{len({t.task for t in groups[name]})} of {size} tasks of {name}"
        for name, size in split.sizes.items()
        if name in groups and len({t.task for t in groups[name]}) < size
    ]
    if short:
        notes.append(f"{who}: {', '.join(short)}.")
    return notes + failure_notes(entry)


def failure_notes(entry: ResultSet) -> list[str]:
    """The note on episodes that ended in an error of the infrastructure, if there are any."""
    count = metrics.count_failed(entry.episodes)
    if not count:
        return []
    who = f"{entry.model}, {entry.agent} ({entry.description})"
    return [f"{who}: failed (ended in an error, in no figure): {count}."]


def mixed_conditions_warning(entries: Iterable[ResultSet]) -> list[str]:
    """The warning that belongs to a table whose rows were obtained under different conditions."""
    if len({e.conditions for e in entries}) < 2:
        return []
    return ["rows with different conditions are not to be put side by side."]


def _rank(model: str) -> tuple[int, str]:
    plain = model.removesuffix(SCHEMA_GIVEN)
    return (MODEL_ORDER.index(plain) if plain in MODEL_ORDER else len(MODEL_ORDER), model)
