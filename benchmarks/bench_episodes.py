"""Measures gold episodes (reset, gold, submit with scoring) per second, and where the time goes.

    python benchmarks/bench_episodes.py [DATASET] [--image IMAGE] [--workers 1 2] [--seconds 8]
        [--turns 2] [--authors CHECKOUT]

Each worker is a process of its own. It and its children have one core if the row says so, and
otherwise all cores: one worker already prewarms its next sandbox on a second core. The results of
golds that `intercode check`, which runs first, finds to be stable come from the gold cache;
--no-gold-cache runs every gold. With a checkout of the authors' repository (or
INTERCODE_AUTHORS) and a Docker daemon (.ci/docker) their environment plays the sound tasks of file
system 1 in turns with ours."""

from __future__ import annotations

import argparse
import functools
import itertools
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import peers
import plain_golds
from measuring import Processor
from where import Spans

import intercode
from intercode import datasets
from intercode.core.errors import InterCodeError
from intercode.core.types import Dataset
from intercode.evaluation.check.dataset import check
from intercode.results.report import render
from intercode.results.tables import Cell, Table

THEIRS = "the authors' BashEnv on Docker"


@dataclass(frozen=True)
class Rate:
    """One measurement: episodes, solved episodes, seconds, seconds of processor time, the medians
    of reset, step and submit in ms, and the ms per episode spent in each part."""

    episodes: int
    solved: int
    seconds: float
    processor: float
    medians: tuple[float, float, float]
    spans: dict[str, float]


def play(
    settings: dict[str, Any], seconds: float, core: int | None, ready: Any, results: Any
) -> None:
    """Play gold episodes for a while, once all workers are ready; report a Rate without processor
    time. ``core``: the core on which this process and its children have to run."""
    if core is not None:
        os.sched_setaffinity(0, {core})
    durations: tuple[list[float], ...] = ([], [], [])
    solved = 0
    with Spans() as spans, intercode.make("bash", **settings) as env:
        env.reset(options={"task": 0})
        env.step("true")
        ready.wait()
        spans.clear()
        begun = time.perf_counter()
        while time.perf_counter() < begun + seconds:
            marks = [time.perf_counter()]
            env.reset(options={"task": len(durations[0]) % len(env.dataset)})
            marks.append(time.perf_counter())
            env.step(env.task.gold)
            marks.append(time.perf_counter())
            solved += env.submit()[1] >= 1 - 1e-9
            marks.append(time.perf_counter())
            for spent, a, b in zip(durations, marks, marks[1:], strict=False):
                spent.append((b - a) * 1000)
        took = time.perf_counter() - begun
        medians = tuple(statistics.median(spent) for spent in durations)
        where = {name: ms / len(durations[0]) for name, ms in spans.total.items()}
    results.put((len(durations[0]), solved, took, medians, where))


def measure(
    settings: dict[str, Any], workers: int, seconds: float, cpu: Processor, pinned: bool = False
) -> Rate:
    """Let this many workers play at the same time; ``pinned``: each on a core of its own."""
    cores = sorted(os.sched_getaffinity(0))
    context = multiprocessing.get_context("spawn")
    results, ready = context.SimpleQueue(), context.Barrier(workers + 1)
    processes = [
        context.Process(target=play, args=(settings, seconds, core, ready, results))
        for core in ((cores * workers)[:workers] if pinned else [None] * workers)
    ]
    for process in processes:
        process.start()
    ready.wait()  # all workers have loaded their data
    before = cpu.used()
    rows = [results.get() for _ in processes]
    used = cpu.used() - before
    for process in processes:
        process.join()
    return Rate(
        sum(r[0] for r in rows),
        sum(r[1] for r in rows),
        max(r[2] for r in rows),
        used,
        tuple(statistics.mean(r[3][i] for r in rows) for i in range(3)),  # type: ignore[arg-type]
        {name: statistics.mean(r[4][name] for r in rows) for name in rows[0][4]},
    )


def authors(theirs: peers.Authors, seconds: float) -> Rate:
    """Measure the authors' environment once. Its processor time is that of the whole machine."""
    found, start = [], time.perf_counter()
    while time.perf_counter() - start < seconds:
        found.append(theirs.play())
    took = time.perf_counter() - start
    medians = tuple(
        statistics.median(f[call] for f in found) for call in ("reset", "step", "submit")
    )
    solved, cpu = (sum(f[part] for f in found) for part in ("solved", "cpu"))
    return Rate(len(found), int(solved), took, cpu / 1000, medians, {})  # type: ignore[arg-type]


def row(name: str, rates: Sequence[Rate], base: float | None) -> tuple[Cell, ...]:
    """Return a row of the table: the medians of several measurements."""
    per_second = statistics.median(r.episodes / r.seconds for r in rates)
    return (
        name,
        per_second,
        per_second / base if base else "",
        100 * sum(r.solved for r in rates) / sum(r.episodes for r in rates),
        *(statistics.median(r.medians[i] for r in rates) for i in range(3)),
        statistics.median(1000 * r.processor / r.episodes for r in rates),
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command-line options."""
    parser.add_argument("dataset", nargs="?", default="nl2bash:verified")
    parser.add_argument("--image")
    parser.add_argument("--profile", default="standard")
    parser.add_argument("--no-gold-cache", action="store_true", help="run every gold")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=8.0, help="of each turn")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--authors", type=Path, default=os.environ.get("INTERCODE_AUTHORS"))


def chosen(args: argparse.Namespace) -> tuple[Dataset, str]:
    """Return the tasks to play, and a note if they are not the requested ones."""
    try:
        dataset = datasets.load(args.dataset)
        with intercode.make("bash", dataset=dataset, image=args.image) as env:
            env.reset(options={"task": 0})  # unpacks the image if necessary
        return dataset, ""
    except InterCodeError as e:
        return datasets.load("starter"), f"{args.dataset} cannot be played here: {e}"


def tables(args: argparse.Namespace, stack: ExitStack) -> list[Table]:
    """Play in turns; return how fast it was and where the time went. ``stack`` closes what is open
    then."""
    dataset, note = chosen(args)
    same = tuple(t for t in dataset.tasks if t.group == "fs_1")
    settings = {"dataset": dataset, "image": args.image, "profile": args.profile}
    settings |= {"use_gold_cache": False} if args.no_gold_cache else {}
    entrants: dict[str, Callable[[], Rate]] = {}
    notes = [note] if note else []
    notes.append(_prove(dataset, args))
    notes.append(f"the tasks of the rows below 'ours' are {dataset.name}, {args.profile} profile")
    cpu = Processor()
    if not args.authors:
        notes.append("no --authors: not compared with their environment")
    elif why := peers.without_docker():
        notes.append(why)
    elif same:
        theirs = stack.enter_context(closing(peers.Authors(Path(args.authors))))
        entrants[THEIRS] = lambda: authors(theirs, 2 * args.seconds)
        on_same = {**settings, "dataset": replace(dataset, tasks=same)}
        entrants["ours on the same tasks"] = lambda: measure(on_same, 1, args.seconds, cpu)
    for pinned, n in itertools.product((True, False), args.workers):
        where = ("a core each" if n > 1 else "one core") if pinned else "any core"
        for kind, more in (("new sandboxes", {}), ("recycled sandboxes", {"recycle": True})):
            name = f"{n} worker{'s' * (n > 1)}, {where}, {kind}"
            entrants[name] = functools.partial(
                measure, {**settings, **more}, n, args.seconds, cpu, pinned
            )
    rates: dict[str, list[Rate]] = {name: [] for name in entrants}
    try:
        for _ in range(args.turns):
            for name, work in entrants.items():
                rates[name].append(work())
    finally:
        cpu.close()
    if not cpu.exact:
        notes.append("processor time is the whole machine's: idle machines only")
    elif THEIRS in rates:
        notes.append("processor time of the authors' row is the whole machine's, with Docker's")
    try:
        plain = plain_golds.processor_ms(dataset, args.image)
        notes.append(f"the golds alone in a plain bash, without InterCode: {plain:.1f} ms of cpu")
    except OSError as e:
        notes.append(f"golds in a plain bash are not measured: {e}")
    base = None
    if THEIRS in rates:
        base = statistics.median(r.episodes / r.seconds for r in rates[THEIRS])
    done = [row(name, found, base) for name, found in rates.items()]
    return [_speed(done, notes), *_where(rates)]


def _prove(dataset: Dataset, args: argparse.Namespace) -> str:
    """Cache golds that give the same result twice; return a sentence with their number."""
    if args.profile != "standard" or args.no_gold_cache:
        return "every gold runs again in every episode"
    cached = check(dataset, image=args.image).cached_tasks
    return f"the golds of {cached} of {len(dataset)} tasks are cached, and not run again"


def _speed(rows: list[tuple[Cell, ...]], notes: list[str]) -> Table:
    return Table(
        "episodes",
        "Gold episodes; medians in ms, user and system processor time in ms an episode",
        ("who", "episodes/s", "x authors", "solved %", "reset", "step", "submit", "cpu"),
        tuple(rows),
        notes=tuple(notes),
        digits=(("reset", 2), ("step", 2), ("submit", 2), ("cpu", 1)),
    )


def _where(rates: dict[str, list[Rate]]) -> list[Table]:
    """Return the table of where the time went, in ms per episode; the parts overlap."""
    shown = [(name, found[-1].spans) for name, found in rates.items() if found[-1].spans]
    if not shown:
        return []
    rows = tuple((span, *(spans[span] for _, spans in shown)) for span in shown[0][1])
    columns = ("what", *(name for name, _ in shown))
    title = "Where the time goes: ms of wall time an episode, in any thread"
    return [Table("where", title, columns, rows, digits=tuple((c, 2) for c in columns[1:]))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    with ExitStack() as stack:
        print(render(tables(parser.parse_args(), stack)))


if __name__ == "__main__":
    main()
