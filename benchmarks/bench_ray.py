"""Measures the overhead of Ray for an episode, and the cost of a lost node.

    python benchmarks/bench_ray.py [--episodes 2000] [--parallel 8]

It plays the starter's Bash tasks with their golds: with the local runner, on two nodes of this
machine (two raylets with their workers, each with a cache of its own), and on two nodes of which
one is killed with SIGKILL half-way and not replaced. Every episode has to be recorded once, with
the result of the local run, and no sandbox may be left. Times start with the first episode; the
start of the cluster and of the host processes is reported separately. CPU time is that of the
driver, the nodes and all sandboxes, and is more reliable than seconds on a busy machine. Needs the
extra ``ray``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from measuring import Processor

from intercode.core import trajectories
from intercode.core.config import EvalConfig
from intercode.core.types import Trajectory
from intercode.evaluation.evaluate.run import evaluate
from intercode.results.report import render
from intercode.results.tables import Cell, Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support import traces
from support.raylets import Raylets, left_of

_TASKS = 70


@dataclass
class Run:
    """One run: seconds until its first episode ended and seconds from then on, the processor time
    of the latter, and its episodes."""

    before: float
    seconds: float
    processor: float
    episodes: list[Trajectory]

    @property
    def each(self) -> float:
        """Milliseconds per episode."""
        return 1000 * self.seconds / max(1, len(self.episodes) - 1)

    @property
    def work(self) -> float:
        """Milliseconds of processor time per episode."""
        return 1000 * self.processor / max(1, len(self.episodes) - 1)

    def results(self) -> dict[tuple[str, int], tuple[object, ...]]:
        """The result of each episode."""
        return {
            (t.task, t.epoch): (t.score, t.end, *((s.action, s.observation) for s in t.steps))
            for t in self.episodes
        }


@dataclass
class Watch(threading.Thread):
    """Notes when a run's first episode ended, kills a node after so many episodes (0: never)."""

    file: Path
    processor: Processor
    raylets: Raylets | None = None
    at: int = 0
    first: float = 0.0
    used: float = 0.0
    killed: int = 0
    families: list[traces.Family] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)
        self.over = threading.Event()

    def __hash__(self) -> int:
        return id(self)

    def run(self) -> None:
        """Watch until the run is over."""
        while not self.over.wait(0.01):
            done = self.file.read_bytes().count(b"\n") if self.file.exists() else 0
            if done and not self.first:
                self.first, self.used = time.monotonic(), self.processor.used()
            if self.raylets is not None and self.at and done >= self.at:
                self.families = self.raylets.families()
                self.raylets.kill(self.raylets.nodes[-1])
                self.killed, self.at = done, 0


def timed(
    config: EvalConfig, processor: Processor, raylets: Raylets | None = None, at: int = 0
) -> tuple[Run, Watch]:
    """Play a run with a watch."""
    assert config.out is not None
    watch = Watch(config.out / trajectories.TRAJECTORIES_FILE, processor, raylets, at)
    watch.start()
    begun = time.monotonic()
    evaluate(config, quiet=True)
    end, used = time.monotonic(), processor.used()
    watch.over.set()
    watch.join()
    episodes = list(trajectories.read_trajectories(watch.file))
    return Run(watch.first - begun, end - watch.first, used - watch.used, episodes), watch


def main() -> int:
    """Measure, check, and print. Returns 1 if a check fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--parallel", type=int, default=8)
    args = parser.parse_args()
    epochs = max(1, -(-args.episodes // _TASKS))
    config = EvalConfig("starter", "gold", epochs=epochs, seed=1, parallel=args.parallel)
    processor = Processor()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        local, _ = timed(replace(config, out=home / "local"), processor)
        begun = time.monotonic()
        raylets = Raylets()
        try:
            raylets.add()
            raylets.add()
            start = time.monotonic() - begun
            on_cluster = replace(config, runner=f"ray:{raylets.address}")
            whole, _ = timed(replace(on_cluster, out=home / "whole"), processor, raylets)
            half = len(local.episodes) // 2
            lost, watch = timed(replace(on_cluster, out=home / "lost"), processor, raylets, half)
            left = left_of(watch.families)
        finally:
            raylets.close()
            processor.close()
    runs = {"local": local, "two nodes": whole, "two nodes, one killed": lost}
    print(render([table(runs, local, args.parallel)], "text"))
    checks = [sound(name, run, local) for name, run in runs.items()]
    print(
        f"the cluster took {start:.1f} s to start; killed after {watch.killed} episodes; "
        f"processes left: {len(left)}"
    )
    return 0 if all(checks) and not left and watch.killed > 0 else 1


def table(runs: dict[str, Run], local: Run, parallel: int) -> Table:
    """Return the table of the runs."""
    columns = (
        "",
        "episodes",
        "s before the first",
        "s from then on",
        "ms an episode",
        "processor ms",
        "more, processor ms",
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            name,
            len(run.episodes),
            run.before,
            run.seconds,
            run.each,
            run.work,
            run.work - local.work,
        )
        for name, run in runs.items()
    )
    return Table(
        "ray",
        f"Starter episodes, {parallel} at once",
        columns,
        rows,
        digits=tuple((c, 1) for c in columns[2:]),
    )


def sound(name: str, run: Run, local: Run) -> bool:
    """Print whether every episode was recorded once with the result of the local run."""
    once, same = len(run.episodes) == len(run.results()), run.results() == local.results()
    again = Counter(t.run.get("attempts", 1) for t in run.episodes)
    print(f"{name}: each once: {once}; as the local run: {same}; attempts: {dict(again)}")
    return once and same and len(run.episodes) == len(local.episodes)


if __name__ == "__main__":
    sys.exit(main())
