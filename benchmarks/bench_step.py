"""How long a step of `true` takes, in a row and after other work: a program in the sandbox, use of
64 MiB of memory, or 5 ms asleep. What differs is what the processor's caches hold and whether the
processor has to wake up.

    python benchmarks/bench_step.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from intercode.results.report import render
from intercode.results.tables import Table
from intercode.sessions.bash.persistent import BashSession
from intercode_sandbox import SandboxSpec, images, open_sandbox

ROUNDS = 200
PAGE = 4096


def main() -> None:
    """Measure, and print the table."""
    memory = bytearray(64 << 20)

    def use_memory() -> None:
        for at in range(0, len(memory), PAGE):
            memory[at] ^= 1

    with open_sandbox(SandboxSpec(images.resolve("host"))) as sandbox:
        session = BashSession(sandbox)
        before: dict[str, Callable[[], object]] = {
            "another step": lambda: None,
            "a program in the sandbox": lambda: sandbox.run(["true"]),
            "64 MiB of memory were used": use_memory,
            "5 ms asleep": lambda: time.sleep(0.005),
        }
        rows = []
        for name, work in before.items():
            times = []
            for _ in range(ROUNDS):
                work()
                start = time.perf_counter()
                session.run("true", 5)
                times.append((time.perf_counter() - start) * 1000)
            rows.append((name, statistics.median(times)))
    title = f"A step of `true`, median of {ROUNDS}"
    print(render([Table("step", title, ("after", "ms"), tuple(rows), digits=(("ms", 2),))]))


if __name__ == "__main__":
    main()
