"""The cells of the paper's tables that the given logs cannot fill, with the logs that could."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from intercode.paper.logs.authors import PUBLISHED
from intercode.paper.tables import (
    MODEL_ORDER,
    PAPER_BENCHMARKS,
    SCHEMA_GIVEN,
    PaperBenchmark,
    paper_tables,
)
from intercode.results.report.result_sets import ResultSet
from intercode.results.statistics import metrics
from intercode.results.tables import Cell, Table

SINGLE_TURN_LOG_MODELS = ("gpt-3.5", "gpt-4")
"""Models whose Single Turn column of the SQL table comes from logs of one-turn episodes."""
SCHEMA_GIVEN_MODELS = ("gpt-3.5", "text-bison-001", "chat-bison-001")
"""Models of the table in which the schema is given."""
_TITLES = {"spider": "SQL by hardness", "nl2bash": "Bash by file system"}


@dataclass(frozen=True, slots=True)
class RequiredRow:
    """A row of one of the paper's tables: its ``cells``, and the episodes that it needs.

    ``log`` is the file name of a log with them; ``{fs}`` in it stands for the file system, each of
    which has a log. ``groups`` are the groups that must be present, none for rows without groups.
    ``max_turns`` is the turn limit of the episodes.
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


def report(result_sets: Sequence[ResultSet]) -> tuple[list[Table], list[Table]]:
    """Return the paper's tables as far as the logs give them, and what they do not give."""
    return paper_tables(result_sets), missing_cells(result_sets)


def missing_cells(result_sets: Sequence[ResultSet]) -> list[Table]:
    """Return the table of missing cells; nothing if there is no published log, or nothing is
    missing."""
    published = [e for e in result_sets if e.conditions == PUBLISHED]
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


def _missing_in(wanted: RequiredRow, result_sets: Sequence[ResultSet]) -> tuple[list[str], str]:
    """Return the cells of a row that cannot be filled, and the logs that are missing for them."""
    matching = [
        t
        for e in result_sets
        if (e.dataset, e.agent, e.model) == (wanted.dataset, wanted.agent, wanted.model)
        for t in e.episodes
        if wanted.max_turns in (None, t.run.get("max_turns"))
    ]
    if not wanted.groups:
        return ([], "") if matching else (list(wanted.cells), wanted.log)
    present = metrics.split_episodes(matching, metrics.group_of)
    missing = [g for g in wanted.groups if g not in present]
    if not missing:
        return [], ""
    group_text = missing[0] if len(missing) == 1 else f"{{{','.join(missing)}}}"
    cells = [c for c in wanted.cells if c in missing or c not in wanted.groups]
    return cells, wanted.log.replace("{fs}", group_text)


def _required_rows() -> Iterator[RequiredRow]:
    for split in reversed(PAPER_BENCHMARKS):
        yield from _success_rows(split)
    for split in reversed(PAPER_BENCHMARKS):
        yield from _strategy_rows(split)
    yield from _schema_given_rows()
    refined = ("success %", "turns", "error %")
    yield RequiredRow(
        "strategies",
        "sql, plan-solve-refine, gpt-3.5",
        refined,
        "ic_sql_plan_solve_refine_3_turns.json",
        "spider",
        "plan-solve-refine",
        "gpt-3.5",
    )
    for environment, model, dataset, agent, turns in (
        ("sql", "human", "spider", "human", 10),
        ("ctf", "gpt-4", "ic-ctf", "try-again", 10),
        ("ctf", "gpt-4", "ic-ctf", "try-again", 25),
        ("python", "gpt-3.5", "mbpp", "try-again", 7),
        ("python", "gpt-4", "mbpp", "try-again", 7),
    ):
        log = f"ic_{environment}_multiturn_{model}_{turns}_turns.json"
        # the log named 25-turn records a limit of 15
        bound = {10: 10, 25: 15}[turns] if environment == "ctf" else None
        yield RequiredRow(
            "logs", log, ("tasks", "solved"), log, dataset, agent, model, max_turns=bound
        )


def _success_rows(split: PaperBenchmark) -> Iterator[RequiredRow]:
    """Yield both columns of a model. Single is the first turn of Try Again, except for two models'
    SQL."""
    names = tuple(split.sizes)
    for model in MODEL_ORDER:
        again = _log_name(split, f"multiturn_{model}_10_turns")
        has_single_log = split.dataset == "spider" and model in SINGLE_TURN_LOG_MODELS
        single = _log_name(split, f"multiturn_{model}_1_turns") if has_single_log else again
        for side, log, agent in (
            ("Single", single, "single-turn" if has_single_log else "try-again"),
            ("Try", again, "try-again"),
        ):
            yield RequiredRow(
                _TITLES[split.dataset],
                f"{model}, {side}",
                (*names, "all"),
                log,
                split.dataset,
                agent,
                model,
                names,
            )


def _strategy_rows(split: PaperBenchmark) -> Iterator[RequiredRow]:
    environment = "sql" if split.dataset == "spider" else "bash"
    for agent, log in (
        ("try-again", "multiturn_gpt-3.5_10_turns"),
        ("react", "react_10_turns"),
        ("plan-solve", "plan_solve"),
    ):
        yield RequiredRow(
            "strategies",
            f"{environment}, {agent}, gpt-3.5",
            ("success %", "turns", "error %"),
            _log_name(split, log),
            split.dataset,
            agent,
            "gpt-3.5",
            tuple(split.sizes),
        )


def _schema_given_rows() -> Iterator[RequiredRow]:
    split = PAPER_BENCHMARKS[1]
    for model in SCHEMA_GIVEN_MODELS:
        yield RequiredRow(
            "SQL, schema given",
            f"{model}, Try",
            (*split.sizes, "all"),
            f"ic_sql_multiturn_{model}_10_turns_handicap.json",
            "spider",
            "try-again",
            model + SCHEMA_GIVEN,
            tuple(split.sizes),
        )


def _log_name(split: PaperBenchmark, name: str) -> str:
    return f"ic_sql_{name}.json" if split.dataset == "spider" else f"ic_bash_{name}_{{fs}}.json"
