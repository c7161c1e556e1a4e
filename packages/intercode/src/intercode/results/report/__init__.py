"""Tables from recorded episodes: those of our own runs, and those that plug-ins add."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from intercode.core.errors import UsageError
from intercode.core.logs import find_logs, load_log
from intercode.core.packages import GYM_DISTRIBUTION
from intercode.core.trajectories import TRAJECTORIES_FILE, has_incomplete_line
from intercode.results.rendering import RENDERERS, render
from intercode.results.report.matrix import matrix_tables
from intercode.results.report.result_sets import (
    ResultSet,
    collect_result_sets,
    ignored_notes,
    unfinished_notes,
)
from intercode.results.report.run_tables import is_verified, log_tables, run_tables
from intercode.results.report.statistics_tables import statistics_tables
from intercode.results.tables import Table
from intercode_sandbox.registry import Registry

__all__ = ["RENDERERS", "REPORTS", "build", "render"]

FurtherTables = tuple[list[Table], list[Table]]
"""The tables that precede those of our runs, and those at the end."""
REPORTS = Registry("report", {}, group="intercode.reports", owner=GYM_DISTRIBUTION)
"""Functions ``(result_sets) -> FurtherTables`` of plug-ins, by name."""


def build(paths: Sequence[Path], *, stats: bool = False, matrix: bool = False) -> list[Table]:
    """Return every table that logs and run directories give, verified subsets first.

    ``paths`` are files and directories (see ``intercode.core.logs.find_logs``). ``stats``: with the
    tables of statistics_tables.py. ``matrix``: with those of matrix.py. Notes name each log whose
    last line is incomplete, each run that is not finished, and each file below a directory that is
    no log. Raises UsageError for a path without logs and if none has an episode, DataError for a
    log that cannot be read.
    """
    logs = [(path, load_log(path)) for path in find_logs(paths)]
    incomplete = [path for path, _ in logs if _is_incomplete(path)]
    if not incomplete and not any(episodes for _, episodes in logs):
        raise UsageError(f"{', '.join(map(str, paths))}: no episode in it, so nothing to report")
    result_sets = collect_result_sets(logs)
    runs = run_tables(result_sets)
    verified = [t for t in runs if is_verified(t.name)]
    rest = [t for t in runs if not is_verified(t.name)]
    per_log = [result_set for log in logs for result_set in collect_result_sets([log])]
    statistics = statistics_tables(result_sets) if stats else []
    further = [_further_tables(name, result_sets) for name in REPORTS]
    before = [table for tables, _ in further for table in tables]
    after = [table for _, tables in further for table in tables]
    tables = [*verified, *before, *rest, *log_tables(per_log), *after]
    matrices = matrix_tables(result_sets) if matrix else []
    notes = [*map(_incomplete_note, incomplete), *unfinished_notes(logs), *ignored_notes(paths)]
    return _with_notes([*tables, *matrices, *statistics], incomplete, notes)


def _further_tables(name: str, result_sets: Sequence[ResultSet]) -> FurtherTables:
    make: Callable[[Sequence[ResultSet]], FurtherTables] = REPORTS.load(name)
    return make(result_sets)


def _with_notes(
    tables: list[Table], incomplete: Sequence[Path], notes: Sequence[str]
) -> list[Table]:
    """Return the tables with the notes below the first one. Without a table the incomplete logs
    make one."""
    if not notes:
        return tables
    if not tables:
        rows = tuple((str(path),) for path in incomplete)
        tables = [Table("incomplete", "Logs without a complete episode", ("log",), rows)]
    return [replace(tables[0], notes=(*tables[0].notes, *notes)), *tables[1:]]


def _is_incomplete(log: Path) -> bool:
    file = log / TRAJECTORIES_FILE if log.is_dir() else log
    return file.suffix == ".jsonl" and file.exists() and has_incomplete_line(file)


def _incomplete_note(log: Path) -> str:
    return (
        f"{log}: the last line is incomplete and left out; the process that wrote it was killed, "
        "or is writing. Resuming the run plays that episode again."
    )
