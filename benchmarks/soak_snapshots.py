"""Takes snapshots in random sequences of actions, restores them, and compares states by hash.

    python benchmarks/soak_snapshots.py [--sequences 1000] [--seed 0] [--workers 2]

The exit status is 1 if a restored state ever differs; each such case is printed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from intercode.core.types import Dataset, Task
from intercode.environments.bash.env import BashEnv
from intercode.results.report import render
from intercode.results.tables import Table
from support.changing import goes_back

TASKS = Dataset("any", "bash", (Task("any/0", "Do anything.", gold="true"),))
_CHUNK = 20  # sequences in one episode


def chunk(seed: int, session: str) -> tuple[int, list[str]]:
    """Play one episode; return the number of actions and the faults."""
    actions, faults = 0, []
    with BashEnv(TASKS, session=session, hashes=True, timeout=0.3) as env:
        env.reset()
        for n in range(seed, seed + _CHUNK):
            try:
                actions += goes_back(env, n)
            except AssertionError as e:
                faults.append(str(e))
                env.reset()
    return actions, faults


def main() -> int:
    """Run, print a table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sequences", type=int, default=1000, help="per kind of session")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.sequences, _CHUNK)
    rows, faults = [], []
    with ProcessPoolExecutor(options.workers) as pool:
        for session in ("persistent", "fresh-carried"):
            start = time.monotonic()
            done = list(pool.map(chunk, seeds, repeat(session)))
            bad = [fault for _, found in done for fault in found]
            faults += bad
            took = time.monotonic() - start
            rows.append((session, len(seeds) * _CHUNK, sum(n for n, _ in done), len(bad), took))
    columns = ("session", "sequences", "actions", "other states", "seconds")
    print(render([Table("snapshots", "Snapshot, anything, restore", columns, tuple(rows))]))
    for fault in faults:
        print("FAULT", fault[:2000])
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
