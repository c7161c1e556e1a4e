"""Prints what share of a processor a sandbox gets beside one with 1, 4, 16 or 64 busy processes.

    python benchmarks/bench_processor_share.py [--seconds 3] [--processor 0]

All processes are bound to one processor. An even division gives each sandbox half of it; other work
on that processor takes from both, so the share is that of what both sandboxes got."""

from __future__ import annotations

import argparse
import os
import time

from intercode.results.report import render
from intercode.results.tables import Table
from intercode_sandbox import SandboxSpec, images, open_sandbox
from intercode_sandbox.contract import BaseSandbox

_COUNTS = (1, 4, 16, 64)
_BUSY = """
import os, sys, time
count, processor, end = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
os.sched_setaffinity(0, [processor])
for _ in range(count - 1):
    if not os.fork():
        os.setsid()
        count = 1
        break
while time.time() < end: pass
for _ in range(count - 1): os.wait()
spent = os.times()
print(spent.user + spent.system + spent.children_user + spent.children_system)
"""


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--processor", type=int, default=min(os.sched_getaffinity(0)))
    chosen = parser.parse_args()
    spec = SandboxSpec(images.resolve("host"))
    rows = []
    with open_sandbox(spec) as honest, open_sandbox(spec) as busy:
        for count in _COUNTS:
            share = measure(honest, busy, count, chosen.seconds, chosen.processor)
            rows.append((count, 100 * share))
    title = "Share of a sandbox with one busy process beside another sandbox"
    columns = ("busy processes of the other", "%")
    print(render([Table("processor-share", title, columns, tuple(rows))], "text"))


def measure(
    honest: BaseSandbox, busy: BaseSandbox, count: int, seconds: float, processor: int
) -> float:
    """Return the honest sandbox's part of the processor time of both."""
    end = str(time.time() + seconds)
    outputs = []
    for sandbox, processes in ((busy, count), (honest, 1)):
        reader, writer = os.pipe()
        command = ["python3", "-c", _BUSY, str(processes), str(processor), end]
        sandbox.spawn(command, fds={1: writer})
        os.close(writer)
        outputs.append(reader)
    spent = []
    for reader in outputs:
        with open(reader) as output:
            spent.append(float(output.read().splitlines()[-1]))
    return spent[1] / sum(spent)


if __name__ == "__main__":
    main()
