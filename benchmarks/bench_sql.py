"""Measures gold episodes per second of the SQL engines and of a plain loop on the same server.

    python benchmarks/bench_sql.py [--engines embedded,mysql] [--rounds 3] [--limit N]

An episode is reset, the gold as an action, submit, over all of Spider (INTERCODE_DATA). The plain
loop is what one would write with MySQL Connector/Python: `use`, the gold, the gold again, and the
authors' scoring with SciPy. Everything in a round, the server too, runs on one core or on two (with
as many workers). The rounds of all contenders take turns, and the median is printed. In the first
pass of a process over the tasks, every statement is new to it: with an empty cache on disk
(``new``), or with the translations that another process has cached (``known``: every run but the
first). The second pass is what training has. Other programs on the machine lower the rates, but not
the episodes per second of CPU time (workers and server).
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from intercode import datasets, make
from intercode.core.errors import GoldError
from intercode.core.types import Dataset

PLAIN = "plain loop"


def spider(limit: int | None) -> Dataset:
    """Return the tasks."""
    whole = datasets.load("spider", "sql")
    return Dataset(whole.name, "sql", whole.tasks[:limit])


Play = Callable[[], None]


# ---------------------------------------------------------------- one worker
def episodes(engine: str, dataset: Dataset) -> Iterator[Play]:
    """Plays every gold once in an environment."""
    env = make("sql", dataset, engine=engine)
    env.reset(options={"task": 0})  # loads modules and data
    env.step("SELECT COUNT(*) FROM information_schema.TABLES GROUP BY TABLE_TYPE")

    def play() -> None:
        for index, task in enumerate(dataset.tasks):
            env.reset(options={"task": index})
            env.step(task.gold or "")
            with suppress(GoldError):  # 19 golds fail on MySQL 8
                env.submit()

    yield play
    env.close()


def plain_loop(dataset: Dataset) -> Iterator[Play]:
    """Plays every gold once in a plain loop."""
    import mysql.connector
    from scipy.stats import kendalltau

    from intercode_sql.server import private_server

    database = dataset.tasks[0].database
    assert database is not None
    lease = private_server.lease_server(database.path)
    connection = mysql.connector.connect(
        unix_socket=lease.address.unix_socket,
        user="root",
        charset="utf8mb4",
        collation="utf8mb4_general_ci",
    )
    cursor = connection.cursor(buffered=True)

    def rows(code: str) -> list[str]:
        cursor.execute(code)
        return [str(row) for row in cursor.fetchall()]

    def play() -> None:
        for task in dataset.tasks:
            assert task.database is not None
            cursor.execute(f"use {task.database.name}")
            with suppress(mysql.connector.Error):
                a, g = rows(task.gold or ""), rows(task.gold or "")
                common = Counter(a) & Counter(g)
                share = common.total() / max(1, (Counter(a) | Counter(g)).total())
                if len(a) > 1:
                    rank = {row: number for number, row in enumerate(sorted({*a, *g}))}
                    tau = kendalltau([rank[row] for row in a], [rank[row] for row in g]).statistic
                    round(float(tau) * share, 2)

    yield play
    connection.close()
    lease.release()


def work(what: str, limit: int | None) -> None:
    """Run a worker process: one pass for every line of standard input, until it ends."""
    dataset = spider(limit)
    if what == "server":
        from intercode_sql.server import private_server

        database = dataset.tasks[0].database
        assert database is not None
        lease = private_server.lease_server(database.path)
        print("ready", flush=True)
        sys.stdin.readline()
        lease.control.close()
        return
    for play in plain_loop(dataset) if what == PLAIN else episodes(what, dataset):
        print("ready", flush=True)
        while sys.stdin.readline():
            began = time.process_time()
            play()
            print(time.process_time() - began, flush=True)


# ----------------------------------------------------------------- a round
@dataclass(frozen=True)
class Rate:
    """Episodes per second, and per second of processor time."""

    wall: float
    busy: float


PASSES = ("new", "known", "second")


def one_round(what: str, workers: int, limit: int | None) -> dict[str, Rate]:
    """Return the rate of each kind of pass, with this many processes on as many cores."""
    cores = sorted(os.sched_getaffinity(0))[:workers]
    with separate_cache() as home:
        server_holder = start(home, cores, "server", None) if what in (PLAIN, "mysql") else None
        new, second = passes(home, cores, what, limit, 2)
        (known,) = passes(home, cores, what, limit, 1) if what == "embedded" else (new,)
        if server_holder is not None:
            server_holder.communicate("end\n")
    return dict(zip(PASSES, (new, known, second), strict=True))


def passes(home: Path, cores: list[int], what: str, limit: int | None, number: int) -> list[Rate]:
    """Return the rates of this many consecutive passes by new processes on these cores."""
    processes = [start(home, cores, what, limit) for _ in cores]
    rates = []
    for _ in range(number):
        began, before = time.perf_counter(), server_seconds(home)
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        taken = sum(float(p.stdout.readline()) for p in processes if p.stdout is not None)
        count = len(spider(limit)) * len(processes)
        busy = count / (taken + server_seconds(home) - before)
        rates.append(Rate(count / (time.perf_counter() - began), busy))
    for process in processes:
        process.communicate()
    return rates


def server_seconds(home: Path) -> float:
    """Return the processor time of the servers in this directory."""
    total = 0.0
    for pid_file in home.glob("run-*/pid"):
        fields = Path(f"/proc/{int(pid_file.read_text())}/stat").read_text().rpartition(")")[2]
        total += sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")
    return total


@contextmanager
def separate_cache() -> Iterator[Path]:
    """Provide a directory for the servers and translations of this round."""
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    path = Path(tempfile.mkdtemp(prefix="bench-sql-", dir=parent))
    path.chmod(0o711)
    (path / "kept").mkdir(mode=0o700)
    try:
        yield path / "run"
    finally:
        shutil.rmtree(path, ignore_errors=True)


def start(home: Path, cores: list[int], what: str, limit: int | None) -> subprocess.Popen[str]:
    """Start a worker process of this file on these cores; return it when it is ready."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--worker", what, "--limit", str(limit or 0)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "INTERCODE_SQL_RUNTIME": str(home),
            "INTERCODE_SQL_TRANSLATIONS": str(home.with_name("kept")),
        },
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", f"{what} did not start"
    return process


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engines", default="embedded,mysql")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.worker, options.limit or None)
        return
    kinds = [PLAIN, *options.engines.split(",")]
    cores = [n for n in (1, 2) if n <= len(os.sched_getaffinity(0))]
    rates: dict[tuple[str, int], list[dict[str, Rate]]] = {(k, n): [] for k in kinds for n in cores}
    for _ in range(options.rounds):
        for kind, n in rates:
            rates[kind, n].append(one_round(kind, n, options.limit))
    print_rates(rates)


def print_rates(rates: dict[tuple[str, int], list[dict[str, Rate]]]) -> None:
    """Return a table: each rate, and its multiple of the plain loop's."""
    print("gold episodes:" + " " * 13 + "a second" + " " * 36 + "a second of processor time")
    heads = ("first, new", "first, known", "second pass")
    print(" " * 22 + "".join(f"{head:>15}" for head in 2 * heads))
    for (kind, n), found in sorted(rates.items(), key=lambda item: item[0][1]):
        cells = []
        for clock in ("wall", "busy"):
            for name in PASSES:
                rate, base = (
                    statistics.median(getattr(r[name], clock) for r in some)
                    for some in (found, rates[PLAIN, n])
                )
                # only the embedded engine caches on disk
                same = name == "known" and kind != "embedded"
                cells.append(" " * 13 + "-" if same else f"{rate:7.0f} {rate / base:5.2f}x")
        print(f"{n} core{'s' if n > 1 else ' '}  {kind:12} " + " ".join(cells))


if __name__ == "__main__":
    main()
