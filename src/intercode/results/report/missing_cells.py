"""The cells of the paper's tables that the logs at hand cannot give, with the logs that could."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from intercode.results.report.paper import (
    MODEL_ORDER,
    PAPER_BENCHMARKS,
    SCHEMA_GIVEN,
    PaperBenchmark,
)
from intercode.results.report.result_sets import SOURCE_PUBLISHED, ResultSet
from intercode.results.statistics import metrics
from intercode.results.tables import Cell, Table

SINGLE_TURN_LOG_MODELS = ("gpt-3.5", "gpt-4")
"""Models whose Single Turn column of the SQL table is from logs of one-turn episodes."""
SCHEMA_GIVEN_MODELS = ("gpt-3.5", "text-bison-001", "chat-bison-001")
"""Models of the table in which the schema is given."""
_TITLES = {"spider": "SQL by hardness", "nl2bash": "Bash by file system"}


@dataclass(frozen=True, slots=True)
class RequiredRow:
    """A row of one of the paper's tables: ``cells`` it has, and what its episodes must be of.

    ``log`` is the name under which a log with them is read; ``{fs}`` in it stands for the file
    system, for every one of which there is a log. ``groups``: which have to be there, none for rows
    that no groups make up. ``max_turns``: the limit that the episodes were played with.
    """

    table: str
    row: str
    cells: tuple[str, ...]
    log: str
    dataset: str
    agent: str
    model: str
    groups: tuple[str, ...] = ()
    max_turns: int | None = None


def missing_cells(entries: Sequence[ResultSet]) -> list[Table]:
    """The table of those cells; nothing where no published log is among the entries, or all of
    the paper's tables can be given."""
    published = [e for e in entries if e.conditions == SOURCE_PUBLISHED]
    if not published:
        return []
    rows: list[tuple[Cell, ...]] = []
    for wanted in _required_rows():
        cells, log = _missing_in(wanted, published)
        if cells:
            rows.append((wanted.table, wanted.row, ", ".join(cells), log))
    columns = ("table", "row", "cells", "log that would give them")
    title = "Cells of the paper's tables that these logs cannot give"
    notes = (
        "a log is known by its name. The log of gpt-3.5 on the Bash file system 2 was never "
        "published.",
    )
    return [Table("missing-cells", title, columns, tuple(rows), notes)] if rows else []


def _missing_in(wanted: RequiredRow, entries: Sequence[ResultSet]) -> tuple[list[str], str]:
    """The cells of a row that cannot be given, and the logs that are missing for them."""
    mine = [
        t
        for e in entries
        if (e.dataset, e.agent, e.model) == (wanted.dataset, wanted.agent, wanted.model)
        for t in metrics.completed_episodes(e.episodes)
        if wanted.max_turns in (None, t.run.get("max_turns"))
    ]
    if not wanted.groups:
        return ([], "") if mine else (list(wanted.cells), wanted.log)
    there = metrics.split_episodes(mine, metrics.group_of)
    gone = [g for g in wanted.groups if g not in there]
    if not gone:
        return [], ""
    several = gone[0] if len(gone) == 1 else f"{{{','.join(gone)}}}"
    cells = [c for c in wanted.cells if c in gone or c not in wanted.groups]
    return cells, wanted.log.replace("{fs}", several)


def _required_rows() -> Iterator[RequiredRow]:
    for split in reversed(PAPER_BENCHMARKS):
        yield from _success_rows(split)
    for split in reversed(PAPER_BENCHMARKS):
        yield from _strategy_rows(split)
    yield from _schema_given_rows()
    refined = ("success %", "turns", "error %")
    yield RequiredRow(
        "strategies", "sql, plan-solve-refine, gpt-3.5", refined,
        "ic_sql_plan_solve_refine_3_turns.json", "spider", "plan-solve-refine", "gpt-3.5",
    )  # fmt: skip
    for environment, model, dataset, agent, turns in (
        ("sql", "human", "spider", "human", 10),
        ("ctf", "gpt-4", "ic-ctf", "try-again", 10),
        ("ctf", "gpt-4", "ic-ctf", "try-again", 25),
        ("python", "gpt-3.5", "mbpp", "try-again", 7),
        ("python", "gpt-4", "mbpp", "try-again", 7),
    ):
        log = f"ic_{environment}_multiturn_{model}_{turns}_turns.json"
        # the log that is called 25-turn says of itself that it has 15
        bound = {10: 10, 25: 15}[turns] if environment == "ctf" else None
        yield RequiredRow(
            "logs", log, ("tasks", "solved"), log, dataset, agent, model, max_turns=bound
        )  # fmt: skip


def _success_rows(split: PaperBenchmark) -> Iterator[RequiredRow]:
    """Both columns of a model. Single is the first turn of Try Again, save for two models' SQL."""
    names = tuple(split.sizes)
    for model in MODEL_ORDER:
        again = _log_name(split, f"multiturn_{model}_10_turns")
        apart = split.dataset == "spider" and model in SINGLE_TURN_LOG_MODELS
        single = _log_name(split, f"multiturn_{model}_1_turns") if apart else again
        for side, log, agent in (
            ("Single", single, "single-turn" if apart else "try-again"),
            ("Try", again, "try-again"),
        ):
            yield RequiredRow(
                _TITLES[split.dataset], f"{model}, {side}", (*names, "all"), log,
                split.dataset, agent, model, names,
            )  # fmt: skip


def _strategy_rows(split: PaperBenchmark) -> Iterator[RequiredRow]:
    environment = "sql" if split.dataset == "spider" else "bash"
    for agent, log in (
        ("try-again", "multiturn_gpt-3.5_10_turns"),
        ("react", "react_10_turns"),
        ("plan-solve", "plan_solve"),
    ):
        yield RequiredRow(
            "strategies", f"{environment}, {agent}, gpt-3.5", ("success %", "turns", "error %"),
            _log_name(split, log), split.dataset, agent, "gpt-3.5", tuple(split.sizes),
        )  # fmt: skip


def _schema_given_rows() -> Iterator[RequiredRow]:
    split = PAPER_BENCHMARKS[1]
    for model in SCHEMA_GIVEN_MODELS:
        yield RequiredRow(
            "SQL, schema given", f"{model}, Try", (*split.sizes, "all"),
            f"ic_sql_multiturn_{model}_10_turns_handicap.json", "spider", "try-again",
            model + SCHEMA_GIVEN, tuple(split.sizes),
        )  # fmt: skip


def _log_name(split: PaperBenchmark, name: str) -> str:
    return f"ic_sql_{name}.json" if split.dataset == "spider" else f"ic_bash_{name}_{{fs}}.json"
