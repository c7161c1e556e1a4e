"""Fuzzes the sandbox through its shell session for as long as asked, and prints a table.

    python benchmarks/soak_fuzz.py [--random 20000] [--mutated 20000] [--seed 1] [--workers 2]
        [--out runs/fuzz-actions.jsonl]

Each run of 500 actions is recorded in --out. Runs that are recorded there are not repeated, so that
the same command continues after Ctrl-C, and the table has all that were recorded with the same
commit, whatever their seed. The exit status is 1 if there is a fault; each is printed with its seed
and actions.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from measuring import Record

from hostile import fuzz  # from tests/
from intercode.results.report import render
from intercode.results.tables import Table

_HELD = "descriptors of a worker after a run"
_CHUNK = 500  # actions per run; each has a seed of its own, so that a fault can be run again
Outcome = tuple[str, int, int, Counter[str], list[str]]
"""The arguments of ``chunk``, the events and the faults."""


def chunk(kind: str, seed: int, count: int) -> Outcome:
    """One run."""
    rng = random.Random(seed)
    seeds = fuzz.corpus()
    makers = {"random": fuzz.random_bytes, "mutated": lambda r: fuzz.mutated(r, seeds)}
    make = makers[kind]
    run = fuzz.Fuzz(seed)
    try:
        run.run([make(rng) for _ in range(count)])
    finally:
        run.close()
    run.counts[_HELD] = len(os.listdir("/proc/self/fd"))
    return kind, seed, count, run.counts, run.faults


def jobs(options: argparse.Namespace) -> list[tuple[str, int, int]]:
    """Return the arguments of ``chunk`` for every run."""
    found = []
    for number, kind in enumerate(("random", "mutated")):
        left, seed = getattr(options, kind), options.seed * 1_000_000 + number * 500_000
        while left > 0:
            found.append((kind, seed, min(left, _CHUNK)))
            left, seed = left - _CHUNK, seed + 1
    return found


def table(outcomes: list[list[Any]]) -> Table:
    """Return a table of the events, by kind of action."""
    kinds = [kind for kind in ("random", "mutated") if any(o[0] == kind for o in outcomes)]
    totals: dict[str, Counter[str]] = {kind: Counter({"faults": 0}) for kind in kinds}
    for kind, _, _, counts, _ in outcomes:
        totals[kind].update(counts)
    names = sorted({name for total in totals.values() for name in total} - {_HELD})
    rows: list[tuple[str | float, ...]] = [(n, *(totals[k][n] for k in kinds)) for n in names]
    held = [[o[3][_HELD] for o in outcomes if o[0] == kind] for kind in kinds]
    rows.append((_HELD, *(f"{counts[0]} to {max(counts)}" for counts in held)))
    return Table("fuzz", "Fuzzing", ("what", *kinds), tuple(rows))


def main() -> int:
    """Parse the command line, run, and print. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--random", type=int, default=20_000, help="actions of random bytes")
    parser.add_argument("--mutated", type=int, default=20_000, help="actions of mutated commands")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--out", type=Path, default=Path("runs/fuzz-actions.jsonl"))
    options = parser.parse_args()
    start, record = time.monotonic(), Record(options.out)
    done = {tuple(result[:3]) for result in record.results}
    work = [job for job in jobs(options) if job not in done]
    with ProcessPoolExecutor(options.workers) as pool:
        for future in as_completed([pool.submit(chunk, *job) for job in work]):
            record.add(*future.result())
    print(render([table(record.results)]))
    print(f"commit {record.commit}, {len(work)} new runs, {time.monotonic() - start:.0f} s")
    faults = [fault for result in record.results for fault in result[4]]
    for fault in faults:
        print("FAULT", fault[:2000])
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
