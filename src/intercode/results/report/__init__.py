"""Tables out of recorded episodes: the paper's, and those of our own runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from intercode.core.logs import find_logs, load_log
from intercode.results.report.missing_cells import missing_cells
from intercode.results.report.paper import paper_tables
from intercode.results.report.result_sets import collect_result_sets
from intercode.results.report.run_tables import is_verified, log_tables, run_tables
from intercode.results.report.statistics_tables import statistics_tables
from intercode.results.tables import RENDERERS, Table, render

__all__ = ["RENDERERS", "Table", "build", "render"]


def build(paths: Sequence[Path], *, stats: bool = False) -> list[Table]:
    """Every table that logs and run directories give, verified subsets first.

    ``paths`` are files and directories (see ``intercode.core.logs.find_logs``). ``stats``: with those of
    statistics_tables.py.
    Raises UsageError for a path without logs, DataError for a log that cannot be read.
    """
    logs = [(path, load_log(path)) for path in find_logs(paths)]
    entries = collect_result_sets(logs)
    runs = run_tables(entries)
    leading = [t for t in runs if is_verified(t.name)]
    rest = [t for t in runs if not is_verified(t.name)]
    each = [entry for log in logs for entry in collect_result_sets([log])]
    more = statistics_tables(entries) if stats else []
    tables = [*leading, *paper_tables(entries), *rest, *log_tables(each), *missing_cells(entries)]
    return [*tables, *more]
