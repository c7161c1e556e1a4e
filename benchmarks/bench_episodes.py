"""Whole gold episodes (reset, gold, submit with scoring) per second, and what the caller waits for.

    python benchmarks/bench_episodes.py [DATASET] [--image IMAGE] [--workers 1 2] [--seconds 10]

The gold runs in a box of its own for every score; nothing is cached. With several workers each is a
process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from typing import Any

import intercode
from intercode import datasets
from intercode.report import render
from intercode.report.tables import Table


def play(settings: dict[str, Any], seconds: float, results: Any) -> None:
    """Play gold episodes for a while; report how many and the medians in milliseconds."""
    resets, steps, submits, rewards = [], [], [], []
    with intercode.make("bash", **settings) as env:
        env.reset(options={"task": 0})
        deadline = time.perf_counter() + seconds
        while time.perf_counter() < deadline:
            t0 = time.perf_counter()
            env.reset(options={"task": len(resets) % len(env.dataset)})
            t1 = time.perf_counter()
            env.step(env.task.gold)
            t2 = time.perf_counter()
            rewards.append(env.submit()[1])
            t3 = time.perf_counter()
            for kept, took in ((resets, t1 - t0), (steps, t2 - t1), (submits, t3 - t2)):
                kept.append(took * 1000)
    medians = [statistics.median(kept) for kept in (resets, steps, submits)]
    results.put((len(rewards), sum(r >= 1 for r in rewards), medians))


def measure(settings: dict[str, Any], workers: int, seconds: float) -> list[float]:
    """Episodes per second, share solved in %, and the medians of reset, step and submit."""
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    processes = [
        context.Process(target=play, args=(settings, seconds, results)) for _ in range(workers)
    ]
    for process in processes:
        process.start()
    rows = [results.get() for _ in processes]
    for process in processes:
        process.join()
    count = sum(row[0] for row in rows)
    medians = [statistics.mean(row[2][i] for row in rows) for i in range(3)]
    return [count / seconds, 100 * sum(row[1] for row in rows) / count, *medians]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", nargs="?", default="starter")
    parser.add_argument("--image")
    parser.add_argument("--profile", default="standard")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=10.0)
    args = parser.parse_args()
    settings = {"dataset": args.dataset, "image": args.image, "profile": args.profile}
    with intercode.make("bash", **settings) as env:
        env.reset(options={"task": 0})  # unpacks what is not unpacked yet
    rows = [(n, *measure(settings, n, args.seconds)) for n in args.workers]
    name = f"{datasets.load(args.dataset).name}, {args.profile}"
    table = Table(
        "episodes",
        f"Gold episodes on {name}; medians in ms",
        ("workers", "episodes/s", "solved %", "reset", "step", "submit"),
        tuple(rows),
        digits=(("reset", 2), ("step", 2), ("submit", 2)),
    )
    print(render([table], "text"))


if __name__ == "__main__":
    main()
