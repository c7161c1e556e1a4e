"""Plays episodes for hours and checks that no resource grows.

    python benchmarks/soak.py [--episodes 100000] [--workers 2] [--every 5] [--seed 1]
        [--image IMAGE] [--out DIR]

Each episode is a task whose reward is known from the formula, played correctly or wrongly in a
sandbox that has to be empty at first: a new one each time, or a recycled one in every second
worker. Forks, snapshots and time-outs are mixed in. Samples of the workers' resources go to
DIR/soak.csv and DIR/soak.svg. Ctrl-C ends it early and prints the table so far. On a pinned image
(such as recipe:nl2bash) the golds are checked first and then come from the gold cache, which is
faster. The exit status is 1 for a wrong reward, a lost sandbox, or a resource that grows."""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import os
import signal
import statistics
import sys
import time
from multiprocessing.sharedctypes import SynchronizedArray
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from soak_episodes import COUNTED, play, tasks
from soak_plot import plot

from intercode.evaluation.check.dataset import check
from intercode.results.report import render
from intercode.results.tables import Table
from intercode_sandbox.platforms.paths import cache_root
from support import traces

Sample = dict[str, float]
_ALLOWED = {"memory of the owners (MB)": (1.05, 8.0), "memory of the launchers (MB)": (1.05, 4.0)}
_ELSE = (1.05, 6.0)
"""Maximum of the last quarter's mean: this factor times the first quarter's, plus this summand."""


def sample(workers: list[int], start: float, done: int) -> Sample:
    """Return the resources that all workers together hold now."""
    families = [traces.family(pid) for pid in workers if Path(f"/proc/{pid}").is_dir()]
    owners = tuple(f.owner for f in families)
    launchers = tuple(p for f in families for p in f.launchers)
    temporary = Path(os.environ.get("TMPDIR", "/tmp"))
    files = [*(cache_root() / "stage").iterdir(), *temporary.glob("*intercode*")]
    return {
        "seconds": round(time.monotonic() - start, 1),
        "episodes": done,
        "descriptors": sum(_count(pid, "fd") for pid, _ in owners),
        "threads": sum(_count(pid, "task") for pid, _ in owners),
        "memory of the owners (MB)": traces.proportional(owners) / 1e6,
        "memory of the launchers (MB)": traces.proportional(launchers) / 1e6,
        "descriptors of the launchers": sum(_count(pid, "fd") for pid, _ in launchers),
        "processes": sum(len(f.sandboxes) for f in families),
        "mounts of the machine": len(Path("/proc/self/mountinfo").read_text().splitlines()),
        "control groups": len(traces.groups_of(launchers)),
        "temporary files": len(files),
    }


def _count(pid: int, what: str) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/{what}"))
    except OSError:  # it has ended, or belongs to another user
        return 0


def quarters(samples: list[Sample]) -> tuple[Table, bool]:
    """Return the means of the first and last quarter of the samples, and whether something grew."""
    samples = samples[max(2, len(samples) // 50) :]  # the beginning is left out
    size = max(1, len(samples) // 4)
    rows: list[tuple[str | float, ...]] = []
    grew = False
    for name in list(samples[0])[2:]:
        first = statistics.mean(s[name] for s in samples[:size])
        last = statistics.mean(s[name] for s in samples[-size:])
        factor, more = _ALLOWED.get(name, _ELSE)
        flat = last <= first * factor + more
        grew = grew or not flat
        rows.append((name, first, last, max(s[name] for s in samples), "" if flat else "GROWS"))
    columns = ("what", "first quarter", "last quarter", "most", "verdict")
    return Table("soak", "Resources of the workers", columns, tuple(rows)), grew


class Soak:
    """The workers of a run. ``done`` counts what each has done; see ``COUNTED``."""

    def __init__(self, episodes: int, workers: int, seed: int, image: str | None) -> None:
        context = multiprocessing.get_context("spawn")
        self.over = context.Event()
        self.faults: Any = context.SimpleQueue()
        self.fault_texts: list[str] = []
        self.done: list[SynchronizedArray[int]] = [
            context.Array("q", len(COUNTED)) for _ in range(workers)
        ]
        share = episodes // workers
        self.processes = [
            context.Process(
                target=play,
                args=(share, seed * 1000 + n, image, n % 2 == 1, *self._shared(n)),
            )
            for n in range(workers)
        ]

    def _shared(self, n: int) -> tuple[Any, ...]:
        return self.done[n], self.over, self.faults

    def count(self, name: str) -> int:
        """Return the sum of a counter over all workers."""
        return sum(array[COUNTED.index(name)] for array in self.done)

    def run(self, every: float) -> list[Sample]:
        """Play to the end, or to Ctrl-C. Returns the samples."""
        signal.signal(signal.SIGINT, lambda *_: self.over.set())
        signal.signal(signal.SIGTERM, lambda *_: self.over.set())
        for process in self.processes:
            process.start()
        workers = [process.pid or 0 for process in self.processes]
        start, samples = time.monotonic(), []
        while all(process.is_alive() for process in self.processes):
            self.processes[0].join(every)
            self.hear()
            if self.processes[0].is_alive():
                samples.append(sample(workers, start, self.count("episodes")))
        for process in self.processes:
            while process.is_alive():
                process.join(every)
                self.hear()
            if process.exitcode:
                self.fault_texts.append(f"a worker ended with status {process.exitcode}")
        self.hear()
        return samples

    def hear(self) -> None:
        """Fetch the reported faults, because a full queue would block a worker at its end."""
        while not self.faults.empty():
            self.fault_texts.append(str(self.faults.get()))


def main() -> int:
    """Parse the command line, run, and print. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two samples")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--image")
    parser.add_argument("--out", type=Path, default=Path("runs"))
    args = parser.parse_args()
    (cache_root() / "stage").mkdir(exist_ok=True)
    if args.image:
        check(tasks(), image=args.image)
    soak = Soak(args.episodes, args.workers, args.seed, args.image)
    start = time.monotonic()
    samples = soak.run(args.every)
    seconds = time.monotonic() - start
    rows = tuple((name, soak.count(name)) for name in COUNTED)
    tables = [Table("episodes", "Episodes", ("what", "count"), rows)]
    grew = False
    if len(samples) >= 8:
        args.out.mkdir(parents=True, exist_ok=True)
        with (args.out / "soak.csv").open("w", newline="") as f:
            writer = csv.DictWriter(f, list(samples[0]))
            writer.writeheader()
            writer.writerows(samples)
        (args.out / "soak.svg").write_text(plot(samples, "seconds", list(samples[0])[2:]))
        table, grew = quarters(samples)
        tables.append(table)
    print(render(tables, "text"))
    rate = soak.count("episodes") / seconds
    print(f"{args.workers} workers, seed {args.seed}, {seconds:.0f} s, {rate:.0f} episodes/s")
    for fault in soak.fault_texts[:50]:
        print("FAULT", fault[:1000])
    return 1 if grew or soak.fault_texts else 0


if __name__ == "__main__":
    sys.exit(main())
