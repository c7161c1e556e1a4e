"""Compares Python with the authors' design: reset, step, gold episodes, restore, isolation.

    python benchmarks/bench_python.py [DATASET] [--image IMAGE] [--episodes 200] [--rounds 200]

DATASET is mbpp by default, or the starter tasks if its data is not installed. The authors' design,
one interpreter behind an RPC service that is reset by clearing a dictionary, is rpc_python.py. This
package has a sandbox and an interpreter for each episode, and another for the hidden tests. `reset`
is timed after a pause in which the next sandbox was prewarmed, as it is while a model answers;
episodes are played without pauses, on one core and on two.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measuring import Contender, Processor, take_turns
from rpc_python import Client

import intercode
from intercode import datasets
from intercode.core.errors import InterCodeError
from intercode.core.types import Dataset
from intercode.results.report import render
from intercode.results.tables import Cell, Table

Cells = tuple[Cell, ...]
OURS, THEIRS = "ours", "one interpreter behind RPC"
PAUSE = 0.15  # seconds to prewarm the next sandbox

LEAKS = {
    "a module that was patched": ("import math; math.pi = 3", "import math; print(math.pi != 3)"),
    "a file that was written": (
        "open('/tmp/intercode-bench', 'w').write('x')",
        "import os; print(not os.path.exists('/tmp/intercode-bench'))",
    ),
    "a process that was started": (
        "import subprocess; subprocess.Popen(['sleep', '9.17'])",
        "import glob; print(not any(b'9.17' in open(p, 'rb').read() "
        "for p in glob.glob('/proc/[0-9]*/cmdline')))",
    ),
    "a built-in that was replaced": (
        "import builtins; builtins.sorted = len",
        "print(sorted([2, 1]) == [1, 2])",
    ),
}
"""An effect of an episode, and code for the next one that prints True if the effect is absent."""


def play(
    which: str,
    dataset: Dataset,
    image: str | None,
    cores: set[int],
    tasks: Sequence[int],
    ready: Any,
    results: Any,
) -> None:
    """Play gold episodes of some tasks on some cores, once all players are ready."""
    os.sched_setaffinity(0, cores)
    solved = 0
    if which == OURS:
        env = intercode.make("python", dataset, image=image)
        env.reset(options={"task": 0})
        env.step("1")
    else:
        client = Client()
    ready.wait()
    begun = time.perf_counter()
    for i in tasks:
        task = dataset.tasks[i]
        if which == OURS:
            env.reset(options={"task": i})
            env.step(task.gold)
            solved += env.submit()[1] == 1.0
        else:
            client.reset()
            client.step(str(task.gold))
            solved += client.score(task) == 1.0
    took = time.perf_counter() - begun
    (env if which == OURS else client).close()
    results.put((len(tasks), solved, took))


def episodes(which: str, dataset: Dataset, image: str | None, cores: int, most: int) -> Cells:
    """Return episodes per second, the share solved, and ms of processor time per episode. All
    contenders play the same tasks in a random order."""
    positions = random.Random(0).sample(range(len(dataset)), min(most, len(dataset)))
    context = multiprocessing.get_context("spawn")
    results, ready = context.SimpleQueue(), context.Barrier(cores + 1)
    available = sorted(os.sched_getaffinity(0))[:cores]
    cpu = Processor()
    players = [
        context.Process(
            target=play, args=(which, dataset, image, {core}, positions[n::cores], ready, results)
        )
        for n, core in enumerate(available)
    ]
    for player in players:
        player.start()
    ready.wait()
    before = cpu.used()
    rows = [results.get() for _ in players]
    used = cpu.used() - before
    for player in players:
        player.join()
    count = sum(r[0] for r in rows)
    rate = count / max(r[2] for r in rows)
    return which, cores, rate, 100 * sum(r[1] for r in rows) / count, 1000 * used / count


def latencies(dataset: Dataset, image: str | None, rounds: int) -> list[Cells]:
    """Return medians in ms: reset after a pause, a step that does nothing, restoring a snapshot."""
    with intercode.make("python", dataset, image=image) as env:
        env.reset(options={"task": 0})
        client = Client()
        resets = []
        for n in range(max(3, rounds // 10)):
            env.step("x = 1")
            time.sleep(PAUSE)
            begun = time.perf_counter()
            env.reset(options={"task": n % len(dataset)})
            resets.append((time.perf_counter() - begun) * 1000)
        steps = take_turns(
            {
                "ours": Contender(lambda: env.step("x = 1")),
                "session": Contender(lambda: env.context.workspace.session.run("x = 1", 5)),
                "theirs": Contender(lambda: client.step("x = 1")),
                "their reset": Contender(client.reset),
            },
            rounds,
        )
        env.step("open('/tmp/f', 'w').write('x'); kept = list(range(10**5))")
        taken = take_turns({"taken": Contender(lambda: env.snapshot().close())}, rounds // 10)
        with env.snapshot() as moment:
            back = take_turns({"back": Contender(lambda: env.restore(moment))}, rounds // 10)
        client.close()
    reset = statistics.median(resets)
    return [
        ("reset, as the caller sees it", reset, steps["their reset"]),
        ("step `x = 1`: the session's part", steps["session"], steps["theirs"]),
        ("step `x = 1`: with what changed in the files", steps["ours"], ""),
        ("snapshot: live namespace and files", taken["taken"], ""),
        ("restore: live namespace and files", back["back"], ""),
    ]


def leaks(dataset: Dataset, image: str | None) -> list[Cells]:
    """Return whether the effects of one episode are absent from the next."""
    rows: list[Cells] = []
    client = Client()
    with intercode.make("python", dataset, image=image) as env:
        for what, (first, then) in LEAKS.items():
            env.reset(options={"task": 0})
            env.step(first)
            env.reset(options={"task": 0})
            ours = env.step(then)[0].startswith("True")
            client.reset()
            client.step(first)
            client.reset()
            theirs = client.step(then)["output"].startswith("True")
            rows.append((what, *("gone" if gone else "still there" for gone in (ours, theirs))))
    client.close()
    Path("/tmp/intercode-bench").unlink(missing_ok=True)
    return rows


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", nargs="?", default="mbpp")
    parser.add_argument("--image")
    parser.add_argument("--episodes", type=int, default=200, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=200)
    args = parser.parse_args()
    try:
        dataset = datasets.load(args.dataset, "python")
    except InterCodeError as e:
        print(f"{args.dataset} cannot be played here: {e}")
        dataset = datasets.load("starter", "python")
    print(
        render(
            [
                Table(
                    "latency",
                    f"{dataset.name}: milliseconds, medians",
                    ("what", OURS, THEIRS),
                    tuple(latencies(dataset, args.image, args.rounds)),
                    digits=((OURS, 2), (THEIRS, 2)),
                ),
                Table(
                    "episodes",
                    f"Gold episodes of {dataset.name}",
                    ("design", "cores", "a second", "solved %", "processor ms each"),
                    tuple(
                        episodes(w, dataset, args.image, n, args.episodes)
                        for n in (1, 2)
                        for w in (OURS, THEIRS)
                    ),
                ),
                Table(
                    "leaks",
                    "What an episode leaves to the next",
                    ("what", OURS, THEIRS),
                    tuple(leaks(dataset, args.image)),
                ),
            ],
            "text",
        )
    )


if __name__ == "__main__":
    main()
