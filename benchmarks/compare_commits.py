"""Print how fast the working tree runs sandboxes and episodes, as a ratio to another commit.

    python benchmarks/compare_commits.py [COMMIT] [--rounds N] [--live N]
        [--dataset NAME --image IMAGE] [--only PART ...]

Both trees do the same in processes that take turns, so that other load on the machine affects both.
The figures are medians over all rounds, in milliseconds of wall time, and of processor time of the
process and everything that it started ("cpu"). A ratio above 1 means that the working tree is
slower. Needs git and a machine on which sandboxes work; exact processor time needs root and version
1 of control groups. Some cached golds hold until the next full hour: gold episodes are comparable
only if none passes during the run.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ACTIONS = {"bash": "ls -la ~ | wc -l", "sql": "SELECT 1 + 1", "python": "print(sum(range(10)))"}
FILES = "mkdir /srv/d; for i in {1..199}; do echo $i > /srv/d/$i; done"
SETTLE = 0.02  # seconds for the kernel to remove what has ended, not counted as wall time


class Figures:
    """The figures of one process, by name."""

    def __init__(self) -> None:
        from measuring import Processor

        self.values: dict[str, list[float]] = defaultdict(list)
        self.processor = Processor()

    def time(self, name: str, work: Callable[[], object]) -> None:
        """Note the wall time of a call."""
        start = time.perf_counter()
        work()
        self.values[name].append(1e3 * (time.perf_counter() - start))

    def cpu(self, name: str, work: Callable[[], object], count: int) -> None:
        """Note the processor time of one of ``count`` calls, with what they leave to be done."""
        start = self.processor.used()
        for _ in range(count):
            work()
        time.sleep(SETTLE)
        self.values[f"{name}, cpu"].append(1e3 * (self.processor.used() - start) / count)

    def close(self) -> None:
        """End the measurement of processor time."""
        self.processor.close()


def episodes(figures: Figures, _: argparse.Namespace) -> None:
    """Time the calls of an environment of each kind."""
    import intercode

    for kind, action in ACTIONS.items():
        name = "starter" if kind == "bash" else f"starter:{kind}"
        with intercode.make(kind, dataset=name) as env:
            for i in range(12):
                target = figures if i > 1 else Unrecorded()  # the first two load code
                target.time(f"{kind} reset", lambda i=i: env.reset(options={"task": i}))
                for _ in range(3):
                    target.time(f"{kind} step", lambda action=action: env.step(action))
                target.time(f"{kind} score", env.score)


class Unrecorded:
    """Takes the place of Figures in rounds that are not counted."""

    def time(self, _: str, work: Callable[[], object]) -> None:
        """Call ``work``."""
        work()


def golds(figures: Figures, args: argparse.Namespace) -> None:
    """Measure gold episodes: reset, the gold as an action, and a submission with its score."""
    import intercode
    from intercode import datasets
    from intercode.evaluation.check.dataset import check

    dataset = datasets.load(args.dataset)
    if args.fill_caches:
        check(dataset, image=args.image)
    with intercode.make("bash", dataset=dataset, image=args.image) as env:
        tasks = iter([0, 0, *range(len(dataset))])

        def play() -> None:
            env.reset(options={"task": next(tasks)})
            env.step(env.task.gold)
            assert env.submit()[1] >= 1 - 1e-9 or args.dataset == "starter", env.task.id

        play()
        play()
        figures.cpu("gold episode", play, len(dataset))


def sandboxes(figures: Figures, _: argparse.Namespace) -> None:
    """Measure the operations of sandboxes and sessions, beside a plain bash."""
    from intercode.sandbox import SandboxSpec, images, open_sandbox
    from intercode.sessions.bash.persistent import BashSession

    spec = SandboxSpec(images.resolve("host"))

    def plain() -> None:
        subprocess.run(["bash", "-c", "true"], check=True)

    def create() -> None:
        with open_sandbox(spec) as sandbox:
            sandbox.run(["bash", "-c", "true"])

    def open_session() -> None:
        with open_sandbox(spec) as sandbox:
            BashSession(sandbox).close()

    for work in (plain, create, open_session):
        work()
    for _ in range(20):
        figures.time("plain bash", plain)
        figures.time("create, first output", create)
        time.sleep(SETTLE)
    figures.cpu("plain bash", plain, 50)
    figures.cpu("create, first output", create, 50)
    figures.cpu("create with a session", open_session, 50)
    with open_sandbox(spec) as sandbox:
        session = BashSession(sandbox)
        session.run(FILES, 10)
        for _ in range(200):
            figures.time("step `true`", lambda: session.run("true", 10))
        figures.cpu("step `true`", lambda: session.run("true", 10), 500)
        session.close()


def forks(figures: Figures, _: argparse.Namespace) -> None:
    """Measure forks of an environment with 200 changed files."""
    import intercode

    with intercode.make("bash", dataset="starter") as env:
        env.reset(options={"task": 0})
        env.step(FILES)
        env.fork(1)[0].close()

        def fork() -> None:
            figures.time("fork, 200 files", lambda: twins.extend(env.fork(1)))
            twins.pop().close()
            time.sleep(SETTLE)

        twins: list[Any] = []
        figures.cpu("fork, 200 files", fork, 20)


def turns(figures: Figures, _: argparse.Namespace) -> None:
    """Measure the episodes of 100 environments that take turns, more than are prewarmed."""
    import intercode

    crowd = [intercode.make("bash", dataset="starter") for _ in range(100)]
    following = itertools.cycle(crowd)

    def play() -> None:
        env = next(following)
        env.reset(options={"task": 0})
        env.step(ACTIONS["bash"])

    for _ in range(3 * len(crowd)):
        play()
    figures.cpu("episode, 100 in turns", play, 2 * len(crowd))
    for env in crowd:
        env.close()


def live(figures: Figures, args: argparse.Namespace) -> None:
    """Measure many live environments: how fast they are created, and the memory that they take."""
    if not args.live:
        return
    from bench_density import Crowd, machine, need_descriptors

    import intercode

    need_descriptors(args.live)
    crowd = Crowd(args.live, 4)
    with intercode.make("bash", dataset=crowd.dataset) as first:
        first.reset(options={"task": 0})
    before = machine()["MemAvailable"]
    start = figures.processor.used()
    crowd.environments = crowd.each("created", crowd.open)
    figures.values["live: created a second"].append(crowd.rows[-1][1])
    used = figures.processor.used() - start
    figures.values["live: created a second of processor time"].append(args.live / used)
    less = before - machine()["MemAvailable"]
    figures.values["live: less memory available, MB"].append(less / 1e6)
    crowd.close()


PARTS = {part.__name__: part for part in (episodes, golds, sandboxes, forks, turns, live)}


def run_parts(args: argparse.Namespace) -> dict[str, list[float]]:
    """Measure the package that this process imports."""
    figures = Figures()
    start = time.perf_counter()
    import intercode  # noqa: F401

    figures.values["import"].append(1e3 * (time.perf_counter() - start))
    try:
        for part in args.only:
            PARTS[part](figures, args)
    finally:
        figures.close()
    return dict(figures.values)


def compare(args: argparse.Namespace) -> None:
    """Measure both trees in turns, and print the table."""
    with tempfile.TemporaryDirectory(prefix="intercode-compare-") as directory:
        archive = subprocess.run(
            ["git", "archive", args.commit, "src"], cwd=ROOT, capture_output=True, check=True
        )
        subprocess.run(["tar", "-x", "-C", directory], input=archive.stdout, check=True)
        os.chmod(directory, 0o755)  # the sandboxes' user reads the package in it
        build = Path(directory, "src/intercode/sandbox/supervisor/build.py")
        if build.exists():  # older commits compile their programs when they first need them
            subprocess.run([sys.executable, "-I", str(build)], check=True)
        trees = {"before": Path(directory) / "src", "now": ROOT / "src"}
        for tree in trees.values():
            measure(tree, "--fill-caches")
        values: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in trees}
        for _ in range(args.rounds):
            for name, tree in trees.items():
                for figure, found in measure(tree).items():
                    values[name][figure] += found
    print(f"{'median, ms unless named':<42}{args.commit[:12]:>12}{'now':>10}{'ratio':>8}")
    for figure in values["now"]:
        before, now = (statistics.median(values[name][figure]) for name in ("before", "now"))
        print(f"{figure:<42}{before:>12.3f}{now:>10.3f}{now / before:>8.2f}")


def measure(source: Path, *more: str) -> dict[str, list[float]]:
    """Return the figures of the package in ``source``, measured in a process of its own."""
    command = [sys.executable, __file__, *sys.argv[1:], "--measure", *more]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    values: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return values


def main() -> None:
    """Parse the command line, and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", nargs="?", default="HEAD~1", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=5, help="processes of each tree (default: 5)")
    parser.add_argument("--dataset", default="starter", help="of the gold episodes")
    parser.add_argument("--image", help="of the gold episodes")
    parser.add_argument("--live", type=int, default=0, help="environments that live at once")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    for hidden in ("--measure", "--fill-caches"):
        parser.add_argument(hidden, action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(run_parts(args)))
    else:
        compare(args)


if __name__ == "__main__":
    main()
