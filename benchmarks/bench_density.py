"""Opens a thousand live Bash environments on one machine: makes, steps, scores and closes them.

    python benchmarks/bench_density.py [--environments 1000] [--threads 4]

Each has an episode of the starter suite with its shell, plays the gold and is scored. The memory is
measured in two ways: the proportional set sizes of all processes, and the decrease of the available
memory, which includes files in memory and the kernel's own. The exit status is 1 if something is
left behind or a score is not 1.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from measuring import cache_root

import intercode
from intercode import datasets
from intercode.core.errors import UsageError
from intercode.environments.base.env import InterCodeEnv
from intercode.results.report import render
from intercode.results.tables import Table
from support import traces

_DESCRIPTORS = 12  # maximum per environment
_GONE_SECONDS = 20.0
_LAUNCHER_GROUPS = 64
_PARTS = ("AnonPages", "Shmem", "Slab", "PageTables", "KernelStack", "Percpu")
T = TypeVar("T")


def need_descriptors(environments: int) -> None:
    """Raise the soft limit of open files. Raises UsageError if the hard limit is too low."""
    needed = environments * _DESCRIPTORS + 256
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise UsageError(
            f"{environments} environments need {needed} open files, and this user may have {hard}: "
            f"raise it with `ulimit -Hn {needed}` as root, or ask for fewer"
        )
    if soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def machine() -> dict[str, int]:
    """Return the values of /proc/meminfo in bytes."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines}


def memory_rows(before: dict[str, int], prefix: str = "") -> list[tuple[str, float, str]]:
    """Return rows with what the available memory has lost since ``before``, and to what."""
    now = machine()
    less = before["MemAvailable"] - now["MemAvailable"]
    parts = ((f"{prefix}more {part}", (now[part] - before[part]) / 1e6, "MB") for part in _PARTS)
    return [(f"{prefix}less available", less / 1e6, "MB"), *parts]


class Crowd:
    """Environments that are live at the same time, and the figures measured of them."""

    def __init__(self, count: int, threads: int) -> None:
        self.dataset = datasets.load("starter")
        self.count, self.threads = count, threads
        self.rows: list[tuple[str, float, str]] = []
        self.environments: list[InterCodeEnv] = []

    def each(self, what: str, work: Callable[[int], T]) -> list[T]:
        """Apply ``work`` to every environment, and note the rate."""
        start = time.perf_counter()
        with ThreadPoolExecutor(self.threads) as pool:
            done = list(pool.map(work, range(self.count)))
        seconds = time.perf_counter() - start
        self.rows.append((what, self.count / seconds, "per s"))
        return done

    def open(self, i: int) -> InterCodeEnv:
        """Return a new environment in an episode."""
        env = intercode.make("bash", dataset=self.dataset)
        env.reset(options={"task": i % len(self.dataset.tasks)})
        return env

    def memory(self, when: str, before: dict[str, int]) -> None:
        """Note the resources in use now."""
        mine = traces.family(os.getpid())
        processes = (mine.owner, *mine.launchers, *mine.sandboxes)
        for name, kind in (
            ("owner", (mine.owner,)),
            ("supervisors", mine.supervisors),
            ("PIDs 1", mine.inits),
            ("shells", mine.others),
        ):
            size = traces.proportional(kind) / 1e6
            self.rows.append((f"{when}: {len(kind)} {name}", size, "MB"))
        self.rows.append((f"{when}: all processes", traces.proportional(processes) / 1e6, "MB"))
        self.rows += memory_rows(before, f"{when}: ")
        held = len(os.listdir("/proc/self/fd"))
        self.rows.append((f"{when}: descriptors of the owner", held, ""))
        self.rows.append((f"{when}: threads of the owner", len(os.listdir("/proc/self/task")), ""))

    def groups(self, mine: traces.Family) -> int:
        """Return the number of control groups beyond the few that a launcher keeps for its next
        sandboxes."""
        return max(0, len(traces.groups_of(mine.launchers)) - _LAUNCHER_GROUPS)

    def close(self) -> int:
        """Close all environments, and count what is left."""
        mine = traces.family(os.getpid())
        start = time.perf_counter()
        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(lambda env: env.close(), self.environments))
        closed = time.perf_counter() - start
        stays = len(mine.supervisors) + 1 - self.count  # the launcher keeps a few supervisors ready
        mounts = Path("/proc/self/mountinfo").read_text()
        traces.eventually(lambda: len(traces.living(mine.others)) == 0, _GONE_SECONDS)
        inits = traces.eventually(lambda: len(traces.living(mine.inits)) <= stays, _GONE_SECONDS)
        gone = time.perf_counter() - start
        traces.eventually(lambda: not self.groups(mine), _GONE_SECONDS)
        bare = time.perf_counter() - start
        self.rows.append(("closing all, as the caller sees it", closed, "s"))
        self.rows.append(("until the last process is gone", gone, "s"))
        self.rows.append(("until the last control group is gone", bare, "s"))
        left = {
            "processes in sandboxes": len(traces.living(mine.others)) + (inits is None),
            "control groups": self.groups(mine),
            "mounts": len(Path("/proc/self/mountinfo").read_text().splitlines())
            - len(mounts.splitlines()),
            "files": len(list((cache_root() / "stage").iterdir())),
        }
        self.rows += [(f"left: {name}", count, "") for name, count in left.items()]
        return sum(left.values())


def main() -> int:
    """Parse the command line, run, and print. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--environments", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=4)
    args = parser.parse_args()
    need_descriptors(args.environments)
    crowd = Crowd(args.environments, args.threads)
    with intercode.make("bash", dataset=crowd.dataset) as first:  # starts the shared processes
        first.reset(options={"task": 0})
    before = machine()
    crowd.environments = crowd.each("created", crowd.open)
    crowd.memory("all created", before)
    golds = crowd.each(
        "stepped", lambda i: crowd.environments[i].step(crowd.environments[i].task.gold)
    )
    scores = crowd.each("scored", lambda i: crowd.environments[i].score().value)
    crowd.memory("all scored", before)
    left = crowd.close()
    wrong = sum(score < 1 for score in scores) + sum(done[4]["timed_out"] for done in golds)
    title = f"{args.environments} live Bash environments, {args.threads} threads"
    print(render([Table("density", title, ("what", "value", "unit"), tuple(crowd.rows))], "text"))
    print(f"scores that are not 1: {wrong}")
    return 1 if left or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
