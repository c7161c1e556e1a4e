"""Times a reset and steps of the Bash environment on remote sandboxes, over the loopback interface,
and on those of this machine. All take turns; the medians are printed.

    python benchmarks/bench_remote.py [--rounds 30] [--kind remote:URL]

Without ``--kind``, it starts a server of its own.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import intercode
from intercode.core.types import Dataset, Task
from support.sandbox_server import serving_sandboxes

TASKS = Dataset("bench", "bash", (Task("bench/0", "Make 5.", gold="echo 5 > /tmp/five"),))
STEPS = {
    "step, a builtin": "true",
    "step, `ls`": "ls /usr/bin | tail -1",
    "step, 1 MB": "yes | head -c 1000000",
}
PREWARM_SECONDS = 0.3


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--kind")
    args = parser.parse_args()
    times: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    with ExitStack() as stack:
        kind = args.kind or stack.enter_context(serving_sandboxes()).kind
        envs = {
            name: stack.enter_context(intercode.make("bash", TASKS, backend=each))
            for name, each in {"local": "namespace", "remote": kind}.items()
        }
        for _ in range(args.rounds):
            for name, env in envs.items():
                time.sleep(PREWARM_SECONDS)
                with _Timer(times[name, "reset"]):
                    env.reset()
                for step, code in STEPS.items():
                    with _Timer(times[name, step]):
                        env.step(code)
                with _Timer(times[name, "gold and score"]):
                    env.step("echo 5 > /tmp/five")
                    assert env.score().value == 1
    print(f"{'ms, median':<18}{'local':>10}{'remote':>10}")
    for what in ("reset", *STEPS, "gold and score"):
        cells = [1e3 * statistics.median(times[name, what]) for name in envs]
        print(f"{what:<18}" + "".join(f"{cell:>10.2f}" for cell in cells))


class _Timer:
    """Appends the seconds of a ``with`` block to a list."""

    def __init__(self, times: list[float]) -> None:
        self._times = times

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._times.append(time.perf_counter() - self._began)


if __name__ == "__main__":
    main()
