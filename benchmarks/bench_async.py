"""Opens hundreds of sandboxes at once in one thread: opens, runs, writes, reads, forks and closes.

    python benchmarks/bench_async.py [--sandboxes 200] [--backend auto]

All sandboxes do each operation at the same time, as coroutines of one event loop. The memory is
that of all processes (proportional set sizes), and the decrease of the available memory, which
includes files in memory and the kernel's own. The exit status is 1 if an answer is wrong or a
descriptor is left.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import threading
import time
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from bench_density import machine, need_descriptors

from intercode.results.report import render
from intercode.results.tables import Table
from intercode_sandbox import AsyncSandbox, Sandbox
from support import traces

T = TypeVar("T")
Row = tuple[str, float, str]


async def at_once(
    rows: list[Row], what: str, work: Iterable[Coroutine[object, object, T]]
) -> list[T]:
    """Wait for all coroutines, and note their seconds."""
    start = time.perf_counter()
    found = await asyncio.gather(*work)
    rows.append((f"{what}, all at once", time.perf_counter() - start, "s"))
    return found


async def measure(count: int, backend: str, rows: list[Row]) -> int:
    """Return the number of wrong answers."""
    available = machine()["MemAvailable"]
    opened = await at_once(
        rows, "open", (AsyncSandbox.open("host", backend=backend) for _ in range(count))
    )
    printed = await at_once(
        rows, "run `sleep 1; echo N`", (s.run(f"sleep 1; echo {n}") for n, s in enumerate(opened))
    )
    await at_once(rows, "write a file", (s.write("/n", f"{n}") for n, s in enumerate(opened)))
    note_memory(rows, available)
    read = await at_once(rows, "read it", (s.read("/n") for s in opened))
    forks = await at_once(rows, "fork", (s.fork() for s in opened))
    forked = await at_once(rows, "read it in the fork", (fork.read("/n") for [fork] in forks))
    every = [*opened, *(fork for [fork] in forks)]
    await at_once(rows, f"close {len(every)}", (s.close(wait=True) for s in every))
    texts = [*enumerate(read), *enumerate(forked)]
    wrong = sum(text != f"{n}".encode() for n, text in texts)
    return wrong + sum(result.output != f"{n}\n" for n, result in enumerate(printed))


def note_memory(rows: list[Row], available: int) -> None:
    """Note the memory and the threads in use now. ``available``: the available memory before."""
    mine = traces.family(os.getpid())
    processes = (mine.owner, *mine.launchers, *mine.sandboxes)
    rows.append(("memory of all processes", traces.proportional(processes) / 1e6, "MB"))
    less = available - machine()["MemAvailable"]
    rows.append(("decrease of the available memory", less / 1e6, "MB"))
    rows.append(("threads of the owner", threading.active_count(), ""))


def main() -> int:
    """Parse the command line, run, and print. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sandboxes", type=int, default=200)
    parser.add_argument("--backend", default="auto")
    args = parser.parse_args()
    need_descriptors(2 * args.sandboxes)
    with Sandbox("host", backend=args.backend) as first:  # starts the shared processes
        title = f"{args.sandboxes} sandboxes of {first.tier} in one thread"
        first.run("true")
    held = len(os.listdir("/proc/self/fd"))
    rows: list[Row] = []
    wrong = asyncio.run(measure(args.sandboxes, args.backend, rows))
    rows.append(("descriptors left", len(os.listdir("/proc/self/fd")) - held, ""))
    print(render([Table("async", title, ("what", "value", "unit"), tuple(rows))], "text"))
    print(f"wrong answers: {wrong}")
    return 1 if wrong or rows[-1][1] > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
