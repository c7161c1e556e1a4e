"""Measures the episodes per second and core of trainers, and their share of the possible rate.

    python benchmarks/bench_throughput.py [--episodes 64] [--workers 4] [--rounds 3]
        [--environments bash sql python ctf code] [--through Pool make_vec serve Ray] [--by-family]
    python benchmarks/bench_throughput.py --live 256 [--seconds 10] [--rounds 3]

The first form plays episodes of task families: reset, the gold, submit with its score. Every
driver plays the same tasks, equally often, and has played each once before it is measured. "per
core" divides by the cores of this machine, "ms" is the processor time of an episode with all its
processes. With ``--by-family`` it measures each family, and prints the episodes that a processor
plays in a second. The second form keeps live episodes with a model of 0.2 s whose commands start
programs. The same commands run in plain shells of this machine at the same times, with the same
model. Drivers take turns, and medians are printed. Ray needs the extra ``ray``, serve the extra
``openenv``.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench_pool import Meter, action_of, possible
from measuring import Processor
from openenv.core.generic_client import GenericEnvClient

import intercode
from intercode import datasets
from intercode.core.types import Task
from intercode.results.report import render
from intercode.results.tables import Cell, Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.serving import serving

_ENVIRONMENTS = ("bash", "sql", "python", "ctf", "code")
_DRIVERS = ("Pool", "make_vec", "serve", "Ray")
_TASKS = 16  # of each environment
_FAMILY_TASKS = 4  # of each family
_MODEL = 0.2  # seconds of the simulated model
_END = "__end__"
Play = tuple[int | str, str, str]
"""The id of a task, the action that solves it, and the submission."""
Figures = tuple[float, float, float, float]


def plays_of(dataset: str, by_family: bool) -> dict[str, list[Play]]:
    """Return how some tasks of a dataset are solved: some of all families, by the name of the
    environment, or those of each family, by its name."""
    tasks = datasets.load(dataset).tasks
    chosen: dict[str, list[Task]] = {}
    if by_family:
        for task in tasks:
            chosen.setdefault(task.id.rpartition("/")[0].rpartition("/")[0], []).append(task)
    else:
        some = random.Random(0).sample(tasks, min(_TASKS, len(tasks)))
        chosen[some[0].id.split("/")[1]] = some
    return {
        name: [(t.id, t.solution or "", f"submit {t.flag or ''}".rstrip()) for t in of_one]
        for name, of_one in chosen.items()
    }


async def play_pool(pool: intercode.Pool, plays: list[Play], workers: int, episodes: int) -> None:
    """Play so many episodes in so many slots."""
    numbers = iter(range(episodes))

    async def work() -> None:
        for number in numbers:
            task, action, submission = plays[number % len(plays)]
            async with pool.episode(task, seed=1) as episode:
                await episode.step(action)
                await episode.step(submission)

    await asyncio.gather(*(work() for _ in range(workers)))


class PoolDriver:
    """Plays in ``intercode.Pool``, in this process or on a cluster."""

    def __init__(self, runner: str, environment: str, dataset: str, workers: int) -> None:
        self.workers, self.loop = workers, asyncio.new_event_loop()
        self.pool = intercode.Pool(environment, workers, dataset, runner=runner)

    def play(self, plays: list[Play], episodes: int) -> None:
        """Play so many episodes."""
        self.loop.run_until_complete(play_pool(self.pool, plays, self.workers, episodes))

    def close(self) -> None:
        """Close the pool."""
        self.loop.run_until_complete(self.pool.close())
        self.loop.close()


class VectorDriver:
    """Plays in ``intercode.make_vec``."""

    def __init__(self, environment: str, dataset: str, workers: int) -> None:
        self.workers = workers
        self.envs = intercode.make_vec(
            environment, workers, dataset=dataset, autoreset_mode="Disabled"
        )

    def play(self, plays: list[Play], episodes: int) -> None:
        """Play so many episodes, a multiple of the workers."""
        for first in range(0, episodes, self.workers):
            chosen = [plays[(first + i) % len(plays)] for i in range(self.workers)]
            self.envs.reset(seed=1, options={"tasks": [task for task, _, _ in chosen]})
            self.envs.step([action for _, action, _ in chosen])
            self.envs.step([submission for _, _, submission in chosen])

    def close(self) -> None:
        """Close the environments."""
        self.envs.close()


class ServedDriver:
    """Plays on ``intercode serve``, with a client and a thread for each session."""

    def __init__(self, environment: str, dataset: str, workers: int) -> None:
        command = ("-m", "intercode", "serve", environment, "--dataset", dataset)
        with ExitStack() as stack:
            url = stack.enter_context(serving(*command))
            clients = [GenericEnvClient(base_url=url).sync() for _ in range(workers)]
            self.clients = [stack.enter_context(client) for client in clients]
            self._resources = stack.pop_all()

    def play(self, plays: list[Play], episodes: int) -> None:
        """Play so many episodes."""
        workers = len(self.clients)

        def work(i: int) -> None:
            for number in range(i, episodes, workers):
                task, action, submission = plays[number % len(plays)]
                self.clients[i].reset(seed=1, task=task)
                self.clients[i].step({"code": action})
                self.clients[i].step({"code": submission})

        with ThreadPoolExecutor(workers) as threads:
            list(threads.map(work, range(workers)))

    def close(self) -> None:
        """End the sessions and the server."""
        self._resources.close()


def open_driver(name: str, environment: str, dataset: str, workers: int) -> Any:
    """Return a driver by its name."""
    if name in ("Pool", "Ray"):
        runner = "ray:local" if name == "Ray" else "local"
        return PoolDriver(runner, environment, dataset, workers)
    return (VectorDriver if name == "make_vec" else ServedDriver)(environment, dataset, workers)


def measure_episodes(args: argparse.Namespace) -> Table:
    """Return the episodes per second through each driver, of each environment or family."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    processor = Processor()
    try:
        for environment in args.environments:
            last_seed = _FAMILY_TASKS - 1 if args.by_family else 0
            dataset = f"families:{environment}@seed=0..{last_seed}"
            with ExitStack() as stack:
                drivers = {}
                for name in args.through:
                    drivers[name] = open_driver(name, environment, dataset, args.workers)
                    stack.callback(drivers[name].close)
                for subject, plays in plays_of(dataset, args.by_family).items():
                    found[subject] = measure_drivers(drivers, plays, args, processor)
                    print(subject, file=sys.stderr)
        exact = processor.exact
    finally:
        processor.close()
    cores = len(os.sched_getaffinity(0))
    notes = (
        f"{cores} cores, {args.workers} at once, {args.episodes} episodes, {args.rounds} rounds",
        f"processor time is that of {'the benchmark' if exact else 'the whole machine'}",
    )
    rows: list[tuple[Cell, ...]]
    if args.by_family:
        columns: tuple[str, ...] = ("family", *args.through)
        rows = [
            (subject, *(1000 / each for _, each in of_one.values()))
            for subject, of_one in found.items()
        ]
        title, digits = "Episodes per second of a processor", tuple((c, 1) for c in columns[1:])
    else:
        columns = (
            "environment",
            "driver",
            "episodes/s per core",
            "ms",
            "per second of a processor",
        )
        rows = [
            (subject, name, rate / cores, each, 1000 / each)
            for subject, of_one in found.items()
            for name, (rate, each) in of_one.items()
        ]
        title, digits = "Episodes of task families", tuple((c, 1) for c in columns[2:])
    return Table("throughput", title, columns, tuple(rows), notes, digits)


def measure_drivers(
    drivers: Mapping[str, Any], plays: list[Play], args: argparse.Namespace, processor: Processor
) -> dict[str, tuple[float, float]]:
    """Return the episodes per second and the processor's ms per episode, through each driver."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in drivers}
    for driver in drivers.values():
        driver.play(plays, len(plays))  # fills caches: databases, translations, golds
    for _ in range(args.rounds):
        for name, driver in drivers.items():
            used, begun = processor.used(), time.monotonic()
            driver.play(plays, args.episodes)
            passed, spent = time.monotonic() - begun, processor.used() - used
            found[name].append((args.episodes / passed, 1000 * spent / args.episodes))
    return {
        name: (statistics.median(rate for rate, _ in each), statistics.median(ms for _, ms in each))
        for name, each in found.items()
    }


async def drive(
    step: Callable[[int, str], Awaitable[object]], live: int, seconds: float, processor: Processor
) -> Figures:
    """Let every episode wait for its model and take a step, again and again. Return the steps per
    second, the milliseconds of a processor per step, how many of them are this process's, and how
    many cores the machine had in use."""
    counted = steps = 0
    begin = time.monotonic() + _MODEL
    end = begin + seconds

    async def play(i: int) -> None:
        nonlocal counted, steps
        dice = random.Random(i)
        await asyncio.sleep(_MODEL * dice.random())  # spreads the beginnings of the episodes
        while time.monotonic() < end:
            await step(i, action_of(dice, "programs"))
            counted += begin < time.monotonic() < end
            steps += 1
            await asyncio.sleep(_MODEL)

    meter, used, here = Meter(), processor.used(), time.process_time()
    await asyncio.gather(*(play(i) for i in range(live)))
    here, used = time.process_time() - here, processor.used() - used
    return counted / seconds, 1000 * used / steps, 1000 * here / steps, meter.read()[0]


async def drive_pool(live: int, seconds: float, processor: Processor) -> Figures:
    """Drive episodes of a pool."""
    async with intercode.Pool("bash", size=live, timeout=30.0) as pool:
        episodes = await asyncio.gather(*(pool.begin(i % 70, seed=i) for i in range(live)))
        return await drive(lambda i, a: episodes[i].step(a), live, seconds, processor)


async def drive_shells(live: int, seconds: float, processor: Processor) -> Figures:
    """Drive plain shells of this machine, without sandboxes.

    Each has a session of its own, as each sandbox has, because Linux divides processors by session.
    """
    shells = [
        await asyncio.create_subprocess_exec(
            "bash", "--norc", stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        for _ in range(live)
    ]

    async def step(i: int, action: str) -> None:
        source, sink = shells[i].stdin, shells[i].stdout
        assert source is not None and sink is not None
        source.write(f"{action}\necho {_END}\n".encode())
        await sink.readuntil(f"{_END}\n".encode())

    try:
        return await drive(step, live, seconds, processor)
    finally:
        for shell in shells:
            shell.kill()
            await shell.wait()


def measure_share(live: int, seconds: float, rounds: int) -> Table:
    """Return the share of the possible rate: of the pool, and of plain shells."""
    contenders = {"Pool": drive_pool, "plain shells": drive_shells}
    found: dict[str, list[Figures]] = {name: [] for name in contenders}
    processor = Processor()
    try:
        for _ in range(rounds):
            for name, contender in contenders.items():
                found[name].append(asyncio.run(contender(live, seconds, processor)))
    finally:
        processor.close()
    most, cores = possible(live, _MODEL), len(os.sched_getaffinity(0))
    rows: list[tuple[Cell, ...]] = []
    for name, figures in found.items():
        rate, each, here, busy = (
            statistics.median(column) for column in zip(*figures, strict=True)
        )
        at_most = 100 * cores / each * 1000 / most
        rows.append((name, rate, 100 * rate / most, each, here, at_most, busy))
    columns = (
        "driver",
        "steps/s",
        "% of possible",
        "ms per step",
        "in the driver's process",
        "% at all cores",
        "busy",
    )
    notes = (
        f"{most:.0f} steps/s are possible if neither steps nor the driver take processor time",
        f"ms per step: of a processor; at all cores: if {cores} cores did nothing else",
    )
    title = f"{live} live episodes with commands that start programs"
    return Table("share", title, columns, tuple(rows), notes, tuple((c, 2) for c in columns[1:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--live", type=int)
    parser.add_argument("--environments", nargs="+", default=_ENVIRONMENTS, choices=_ENVIRONMENTS)
    parser.add_argument("--through", nargs="+", default=_DRIVERS, choices=_DRIVERS)
    parser.add_argument("--by-family", action="store_true")
    args = parser.parse_args()
    tasks = _FAMILY_TASKS if args.by_family else _TASKS
    if args.episodes % args.workers or tasks % args.workers:
        parser.error(f"--episodes and {tasks} have to be multiples of --workers")
    table = (
        measure_share(args.live, args.seconds, args.rounds) if args.live else measure_episodes(args)
    )
    print(render([table], "text"))


if __name__ == "__main__":
    main()
