"""What compare_commits.py and sandbox_table.py measure of one source tree, part by part.

They run this file as a process with PYTHONPATH set to the tree. It works while it has its turn and
waits for the next one, so that the processes of several trees take turns of some milliseconds. The
first turn of each part is not counted: it loads code and fills caches. Only names that older
commits have may be imported.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from measuring import Processor, cache_root, sandbox_module

TURNS = 10  # of most parts, after the first one
ACTIONS = {"bash": "ls -la ~ | wc -l", "sql": "SELECT 1 + 1", "python": "print(sum(range(10)))"}
FILES = "mkdir /srv/d; for i in {1..199}; do echo $i > /srv/d/$i; done"
CHANGE = (  # 30 new files, 24 changed, 6 deleted
    "for i in {0..5}; do touch /srv/$i/new{0..4}; rm /srv/$i/9; "
    "for j in {0..3}; do echo changed > /srv/$i/$j; done; done"
)
GOLDS_IN_A_TURN = 11
PLAIN = ["bash", "-c", "true"]
SETTLE = 0.02  # seconds for the kernel to remove what has ended, not counted as wall time
WARM = 0.1  # seconds to prewarm the next sandbox; not counted
FREED = 2e6  # bytes in half a second
PAUSE, END = "pause", "end"  # what a process prints after a turn, and before its figures
GOLD, RECYCLED = "gold episode", "gold episode, recycled"
CREATE, STEP, ROW = "create, first output", "step `true`, 5 in a row", "step `true`, 50 in a row"
RUN, RESET, FORK = "run `true` in a live sandbox", "reset, pool warm", "fork, 200 files"
CHANGES = "changes, 60 of 20,000 files"
CREATED, LESS, GROWN = (
    "sandboxes created a second",
    "live sandboxes: less memory available, MB",
    "live sandboxes: their parts of the memory, MB",
)


class Figures:
    """The figures of one process, by name."""

    def __init__(self) -> None:
        self.values: dict[str, list[float]] = defaultdict(list)
        self.processor = Processor()

    def time(self, name: str, work: Callable[[], object]) -> float:
        """Note the wall time of a call, and return it."""
        start = time.perf_counter()
        work()
        took = 1e3 * (time.perf_counter() - start)
        self.values[name].append(took)
        return took

    def spent(self, work: Callable[[], object], count: int) -> float:
        """Return the processor time of ``count`` calls, with what they leave to be done."""
        start = self.processor.used()
        for _ in range(count):
            work()
        time.sleep(SETTLE)
        return 1e3 * (self.processor.used() - start)

    def cpu(self, name: str, work: Callable[[], object], count: int) -> None:
        """Note the processor time of one of ``count`` calls."""
        self.values[f"{name}, cpu"].append(self.spent(work, count) / count)


def episodes(figures: Figures, _args: argparse.Namespace) -> Iterator[None]:
    """Time the calls of an environment of each kind."""
    import intercode

    with ExitStack() as stack:
        crowd = {}
        for kind in ACTIONS:
            name = "starter" if kind == "bash" else f"starter:{kind}"
            crowd[kind] = stack.enter_context(intercode.make(kind, dataset=name))
        for i in range(2 * TURNS + 1):
            for kind, env in crowd.items():
                figures.time(f"{kind} reset", lambda: env.reset(options={"task": i % 12}))  # noqa: B023
                for _ in range(5):
                    figures.time(f"{kind} step", lambda: env.step(ACTIONS[kind]))  # noqa: B023
                figures.time(f"{kind} score", env.score)
            time.sleep(SETTLE)
            yield


def golds(figures: Figures, args: argparse.Namespace) -> Iterator[None]:
    """Measure gold episodes: reset, the gold as an action, and a submission with its score."""
    import intercode
    from intercode import datasets

    dataset = datasets.load(args.dataset)
    for name, recycle in ((RECYCLED, True), (GOLD, False)):
        with intercode.make("bash", dataset=dataset, image=args.image, recycle=recycle) as env:
            walls: list[float] = []
            following = itertools.cycle(range(len(dataset)))

            def play() -> None:
                start = time.perf_counter()
                env.reset(options={"task": next(following)})  # noqa: B023
                env.step(env.task.gold)
                assert env.submit()[1] >= 1 - 1e-9 or args.dataset == "starter", env.task.id
                walls.append(1e3 * (time.perf_counter() - start))  # noqa: B023

            play()
            play()
            yield
            walls.clear()
            spent, left = 0.0, len(dataset)
            while left:
                count = min(left, GOLDS_IN_A_TURN)
                spent += figures.spent(play, count)
                left -= count
                yield
            figures.values[name].append(sum(walls) / len(walls))
            figures.values[f"{name}, cpu"].append(spent / len(dataset))


def sandboxes(figures: Figures, _args: argparse.Namespace) -> Iterator[None]:
    """Measure the operations of sandboxes and sessions, beside a plain bash."""
    package, images = sandbox_module(), sandbox_module("images")
    from intercode.sessions.bash.persistent import BashSession

    spec = package.SandboxSpec(images.resolve("host"))
    created: list[Any] = []

    def plain() -> None:
        subprocess.run(PLAIN, check=True)

    def create() -> None:
        created.append(package.open_sandbox(spec))
        assert created[-1].run(PLAIN).ok

    def end() -> None:
        created.pop().close()
        time.sleep(SETTLE)

    def create_and_close() -> None:
        create()
        created.pop().close()

    def open_session() -> None:
        with package.open_sandbox(spec) as sandbox:
            BashSession(sandbox).close()

    with package.open_sandbox(spec) as live, closing(BashSession(live)) as session:
        session.run(FILES, 10)

        def step() -> None:
            session.run("true", 10)

        for _ in range(TURNS + 1):
            for _ in range(3):
                figures.time("plain bash", plain)
                figures.time(CREATE, create)
                end()
                figures.time(RUN, lambda: live.run(["true"]))
                for _ in range(5):
                    figures.time(STEP, step)
            for _ in range(50):
                figures.time(ROW, step)
            figures.cpu("plain bash", plain, 10)
            figures.cpu(CREATE, create_and_close, 10)
            figures.cpu("create with a session", open_session, 5)
            figures.cpu(ROW, step, 100)
            yield


def resets(figures: Figures, _args: argparse.Namespace) -> Iterator[None]:
    """Time the reset of an environment whose next sandbox is ready."""
    import intercode

    with intercode.make("bash", dataset="starter") as env:
        for _ in range(TURNS + 1):
            for _ in range(5):
                figures.time(RESET, lambda: env.reset(options={"task": 0}))
                env.step("true")
                time.sleep(WARM)
            yield


def changes(figures: Figures, _args: argparse.Namespace) -> Iterator[None]:
    """Time the search for changed files in a sandbox with 20,000 files in 200 directories."""
    from intercode.core.types import LayerSpec

    package, images = sandbox_module(), sandbox_module("images")

    home = Path(tempfile.mkdtemp(prefix="bench-", dir=cache_root()))
    try:
        for n in range(200):
            directory = home / "tree" / "srv" / str(n)
            directory.mkdir(parents=True)
            for m in range(100):
                (directory / str(m)).write_text(f"{n} {m}\n")
        layers = (images.resolve_layer(LayerSpec("dir", home / "tree")),)
        with package.open_sandbox(package.SandboxSpec(images.resolve("host"), layers)) as sandbox:
            assert sandbox.run(["bash", "-c", CHANGE]).ok
            assert len(sandbox.changes()) == 60
            for _ in range(TURNS + 1):
                for _ in range(10):
                    figures.time(CHANGES, sandbox.changed_paths)
                yield
    finally:
        shutil.rmtree(home)


def forks(figures: Figures, _args: argparse.Namespace) -> Iterator[None]:
    """Measure forks of an environment with 200 changed files."""
    import intercode

    with intercode.make("bash", dataset="starter") as env:
        env.reset(options={"task": 0})
        env.step(FILES)
        twins: list[Any] = []

        def fork() -> None:
            figures.time(FORK, lambda: twins.extend(env.fork(1)))
            twins.pop().close()
            time.sleep(SETTLE)

        for _ in range(TURNS + 1):
            figures.cpu(FORK, fork, 4)
            yield


def turns(figures: Figures, _args: argparse.Namespace) -> Iterator[None]:
    """Measure the episodes of 100 environments that take turns, more than are prewarmed."""
    import intercode

    crowd = [intercode.make("bash", dataset="starter") for _ in range(100)]
    following = itertools.cycle(crowd)

    def play() -> None:
        env = next(following)
        env.reset(options={"task": 0})
        env.step(ACTIONS["bash"])

    for _ in range(2 * len(crowd)):
        play()
    for _ in range(TURNS // 2 + 1):
        figures.cpu("episode, 100 in turns", play, len(crowd) // 2)
        yield
    for env in crowd:
        env.close()


def wait_for_memory() -> None:
    """Wait until the available memory no longer grows: the kernel removes what has ended later."""
    from bench_density import machine

    for _ in range(10):
        before = machine()["MemAvailable"]
        time.sleep(0.5)
        if machine()["MemAvailable"] < before + FREED:
            return


def live(figures: Figures, args: argparse.Namespace) -> Iterator[None]:
    """Measure many live environments: how fast they are created, and the memory that they take."""
    from bench_density import Crowd, machine, need_descriptors

    import intercode

    need_descriptors(args.live)
    with intercode.make("bash", dataset="starter") as first:
        first.reset(options={"task": 0})
    yield
    crowd = Crowd(args.live, 4)
    wait_for_memory()
    before, start = machine()["MemAvailable"], figures.processor.used()
    crowd.environments = crowd.each("created", crowd.open)
    figures.values["live: created a second"].append(crowd.rows[-1][1])
    used = figures.processor.used() - start
    figures.values["live: created a second of processor time"].append(args.live / used)
    less = before - machine()["MemAvailable"]
    figures.values["live: less memory available, MB"].append(less / 1e6)
    crowd.close()


def live_sandboxes(figures: Figures, args: argparse.Namespace) -> Iterator[None]:
    """Measure many live sandboxes without shells: how fast they are created, and their memory."""
    from bench_density import machine, memory_rows, need_descriptors

    package, images = sandbox_module(), sandbox_module("images")

    need_descriptors(args.live)
    spec = package.SandboxSpec(images.resolve("host"))
    package.open_sandbox(spec).close()  # starts the launcher
    yield
    wait_for_memory()
    before, start = machine(), time.perf_counter()
    with ThreadPoolExecutor(4) as threads:
        opened = list(threads.map(lambda _: package.open_sandbox(spec), range(args.live)))
        figures.values[CREATED].append(args.live / (time.perf_counter() - start))
        less, *parts = (value for _, value, _ in memory_rows(before))
        figures.values[LESS].append(less)
        figures.values[GROWN].append(sum(parts))
        list(threads.map(lambda sandbox: sandbox.close(), opened))


PARTS = {
    part.__name__: part
    for part in (
        episodes,
        golds,
        sandboxes,
        resets,
        changes,
        forks,
        turns,
        live,
        live_sandboxes,
    )
}


def work(args: argparse.Namespace, wait: Callable[[], object]) -> dict[str, list[float]]:
    """Measure the package that this process imports. ``wait`` ends a turn and waits for another."""
    figures = Figures()
    start = time.perf_counter()
    import intercode  # noqa: F401

    took = 1e3 * (time.perf_counter() - start)
    if args.fill_caches:
        from intercode import datasets
        from intercode.evaluation.check.dataset import check

        check(datasets.load(args.dataset), image=args.image)
        return {}
    values: dict[str, list[float]] = {"import": [took]}
    try:
        for part in args.only:
            figures.values.clear()
            for number, _ in enumerate(PARTS[part](figures, args)):
                if number == 0:
                    figures.values.clear()
                wait()
            values.update(figures.values)
    finally:
        figures.processor.close()
    return values


def main() -> None:
    """Take turns with other processes: a line of the standard input begins each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--fill-caches", action="store_true")
    args = parser.parse_args()
    messages = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the package prints is no message

    def wait() -> None:
        print(PAUSE, file=messages, flush=True)
        sys.stdin.readline()

    sys.stdin.readline()
    values = work(args, wait)
    print(END, json.dumps(values), file=messages, flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is measured."""
    parser.add_argument("--dataset", default="starter", help="of the gold episodes")
    parser.add_argument("--image", help="of the gold episodes")
    parser.add_argument("--live", type=int, default=0, help="environments that live at once")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")


if __name__ == "__main__":
    main()
