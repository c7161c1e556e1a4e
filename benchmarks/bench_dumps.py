"""Loads dumps in the engines embedded and mysql, and compares their contents and answers.

    python benchmarks/bench_dumps.py --generated 40 [--seed 1]
    python benchmarks/bench_dumps.py chinook.sql sakila.sql employees.sql [--queries 200]

The first command generates schemas over every column type, and writes each by hand, in phpMyAdmin's
form and by mariadb-dump. The second loads given dumps, and prints the seconds and the peak memory
of loading, and how many contents and answers to generated queries are equal. The exit status is 1
if anything differs.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from intercode.results.rendering import render
from intercode.results.tables import Table
from intercode_sql import SqlEngine, open_engine
from intercode_sql.base import SqlLimits
from intercode_sql.embedded.load.loader import build_databases
from intercode_sql.types import DatabaseSpec
from support import dump_forms as forms

_LIMITS = SqlLimits(rows=10_000_000, size=1 << 30)
_GROUP = 10
"""Schemas of one generated dump, each of which is a database."""
_OPTIONS = (
    (),
    ("--hex-blob", "--complete-insert"),
    ("--skip-extended-insert", "--replace"),
    ("--insert-ignore", "--skip-opt", "--create-options"),
)
"""Options of mariadb-dump, by group."""


class Comparison:
    """Counts what is equal in both engines, and prints what differs."""

    def __init__(self) -> None:
        self.equal = self.different = 0

    def compare(self, what: str, one: list[str], other: list[str]) -> None:
        """Compare the contents of a table or the answers to a query."""
        if one == other:
            self.equal += 1
            return
        self.different += 1
        first = next((p for p in zip(one, other, strict=False) if p[0] != p[1]), (one, other))
        print(f"{what}\n  embedded {str(first[0])[:300]}\n  mysql    {str(first[1])[:300]}")

    def databases(
        self, engines: Sequence[SqlEngine], dump: Path, names: Sequence[str], queries: int = 0
    ) -> None:
        """Compare all tables of these databases, and the answers to queries over each."""
        for name in names:
            spec = DatabaseSpec("mysql-dump", dump, name)
            one, other = (engine.open(spec, _LIMITS) for engine in engines)
            self.compare(f"{dump.name}: tables of {name}", *map(forms.table_names, (one, other)))
            for table in forms.table_names(other):
                found = forms.contents(one, table), forms.contents(other, table)
                self.compare(f"{dump.name}: {name}.{table}", *found)
            for query in forms.queries(other, queries, len(names)):
                self.compare(query, forms.answers(one, query), forms.answers(other, query))
            one.close()
            other.close()


def generated(count: int, seed: int, folder: Path) -> Table:
    """Compare generated schemas in three forms. Return a table of what is equal."""
    rows = []
    makers: dict[str, Callable[..., str]] = {
        "written by hand": forms.hand_written,
        "phpMyAdmin's form": forms.phpmyadmin,
    }
    totals = {form: Comparison() for form in (*makers, "mariadb-dump")}
    for number, start in enumerate(range(0, count, _GROUP)):
        schemas = {
            f"s{n}": forms.generated_schema(seed * 1000 + n)
            for n in range(start, min(count, start + _GROUP))
        }
        dumps: dict[str, Path] = {}
        for form, make in makers.items():
            dumps[form] = folder / f"{form.replace(' ', '-')}-{number}.sql"
            dumps[form].write_text("".join(make(n, t) for n, t in schemas.items()), "utf-8")
        options = _OPTIONS[number % len(_OPTIONS)]
        made = forms.by_mariadb_dump(dumps["written by hand"], list(schemas), options)
        dumps["mariadb-dump"] = folder / f"mariadb-dump-{number}.sql"
        dumps["mariadb-dump"].write_bytes(made)
        for form, dump in dumps.items():
            engines = [open_engine("embedded"), open_engine("mysql")]
            totals[form].databases(engines, dump, list(schemas))
            for engine in engines:
                engine.close()
    for form, total in totals.items():
        rows.append((form, str(count), str(total.equal), str(total.different)))
    return Table(
        "dump_forms",
        "Generated schemas in both engines",
        ("form", "schemas", "equal tables", "different tables"),
        tuple(rows),
    )


def _loaded(dump: str, answers: multiprocessing.Queue[tuple[float, int]]) -> None:
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["INTERCODE_CACHE"] = cache
        build_databases(Path(dump))
        seconds = time.perf_counter() - began
    answers.put((seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024))


def given(dumps: Sequence[Path], queries: int) -> tuple[Table, bool]:
    """Compare given dumps. Return a table, and whether anything differs."""
    rows, wrong = [], False
    context = multiprocessing.get_context("spawn")
    for dump in dumps:
        measured: multiprocessing.Queue[tuple[float, int]] = context.Queue()
        child = context.Process(target=_loaded, args=(str(dump), measured))
        child.start()
        seconds, memory = measured.get()
        child.join()
        engines = [open_engine("embedded"), open_engine("mysql")]
        catalog = build_databases(dump).catalog
        began = time.perf_counter()
        first = next(iter(catalog.databases))
        engines[1].open(DatabaseSpec("mysql-dump", dump, first)).close()
        server_seconds = time.perf_counter() - began
        total = Comparison()
        total.databases(engines, dump, list(catalog.databases), queries)
        wrong |= bool(total.different)
        count = sum(t.rows for tables in catalog.databases.values() for t in tables.values())
        rows.append(
            (
                dump.name,
                str(count),
                f"{seconds:.1f}",
                str(memory),
                f"{server_seconds:.1f}",
                str(total.equal),
                str(total.different),
            )
        )
        for engine in engines:
            engine.close()
    head = ("dump", "rows", "s embedded", "MiB embedded", "s mysql", "equal", "different")
    return Table("dumps", "Dumps in both engines", head, tuple(rows)), wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dumps", nargs="*", type=Path)
    parser.add_argument("--generated", type=int, default=0)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    wrong = False
    if options.generated:
        with tempfile.TemporaryDirectory() as folder:
            table = generated(options.generated, options.seed, Path(folder))
        print(render([table]))
        wrong = any(row[3] != "0" for row in table.rows)
    if options.dumps:
        table, different = given(options.dumps, options.queries)
        print(render([table]))
        wrong |= different
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
