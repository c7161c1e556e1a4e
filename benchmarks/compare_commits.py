"""Print how fast the working tree runs sandboxes and episodes, as a ratio to another commit.

    python benchmarks/compare_commits.py [COMMIT] [--rounds N] [--live N]
        [--dataset NAME --image IMAGE] [--only PART ...]

Copies of both trees do the same in two processes that take turns of some milliseconds, each first
in every second turn, so that other load on the machine affects both. A round is a new pair of
processes. The figures are medians over all rounds, in milliseconds of wall time, and of processor
time of the process and everything that it started ("cpu"). A ratio above 1 means that the working
tree is slower; `compare_commits.py HEAD` without changes shows the noise. Needs git and a machine
on which sandboxes work; exact processor time needs root and version 1 of control groups. Some
cached golds hold until the next full hour: gold episodes are comparable only if none passes during
the run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import parts
from measuring import search_path

ROOT = Path(__file__).resolve().parents[1]
Values = dict[str, list[float]]


class Contender(Protocol):
    """Something that works in turns."""

    def turn(self) -> bool:
        """Work for one turn; return whether there is another one."""


class Worker:
    """A process that measures the package of one tree, in turns."""

    def __init__(self, source: Path, arguments: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, parts.__file__, *arguments],
            text=True,
            bufsize=1,
            env={**os.environ, "PYTHONPATH": search_path(source)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.values: Values = {}

    def turn(self) -> bool:
        """Let it work for one turn. Raises RuntimeError if it fails."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write("\n")
        message, _, values = self.process.stdout.readline().strip().partition(" ")
        if message == parts.PAUSE:
            return True
        self.process.stdin.close()
        if self.process.wait() or message != parts.END:
            raise RuntimeError("a process that measures has failed")
        self.values = json.loads(values)
        return False


def take_turns(contenders: Sequence[Contender]) -> None:
    """Let all work in turns, in the reverse order each time, until the first one has ended."""
    order, running = list(contenders), True
    while running:
        going_on = [contender.turn() for contender in order]
        running = all(going_on)
        order.reverse()


@contextmanager
def trees(commit: str) -> Iterator[dict[str, Path]]:
    """Return copies of the packages of a commit ("before") and of the working tree ("now"), in one
    directory, compiled."""
    with tempfile.TemporaryDirectory(prefix="intercode-compare-") as directory:
        os.chmod(directory, 0o755)  # the sandboxes' user reads the package in it
        sources = {name: Path(directory, name) for name in ("before", "now")}
        folders = subprocess.run(  # a commit has one or both of them
            ["git", "ls-tree", "--name-only", commit, "src", "packages"],
            cwd=ROOT,
            capture_output=True,
            check=True,
            text=True,
        ).stdout.split()
        archive = subprocess.run(
            ["git", "archive", commit, *folders], cwd=ROOT, capture_output=True, check=True
        )
        sources["before"].mkdir()
        tar = ["tar", "-x", "-C", str(sources["before"])]
        subprocess.run(tar, input=archive.stdout, check=True)
        unbuilt = shutil.ignore_patterns("bin", ".venv", "__pycache__")
        shutil.copytree(ROOT / "packages", sources["now"] / "packages", ignore=unbuilt)
        for source in sources.values():
            # older commits compile their programs when they first need them
            for build in source.rglob("supervisor/build.py"):
                subprocess.run([sys.executable, "-I", str(build)], check=True)
            subprocess.run([sys.executable, "-m", "compileall", "-q", str(source)], check=True)
        yield sources


def measure(
    sources: dict[str, Path],
    arguments: Sequence[str],
    rounds: int,
    others: Sequence[Contender] = (),
) -> dict[str, Values]:
    """Measure both trees in turns with each other, and with ``others``."""
    values: dict[str, Values] = {name: defaultdict(list) for name in sources}
    for number in range(rounds):
        workers = {name: Worker(source, arguments) for name, source in sources.items()}
        both = list(workers.values())
        take_turns([*(reversed(both) if number % 2 else both), *others])
        for name, worker in workers.items():
            for figure, found in worker.values.items():
                values[name][figure] += found
    return values


def fill_caches(sources: dict[str, Path], arguments: Sequence[str]) -> None:
    """Cache the golds that have a stable result, for both trees."""
    for source in sources.values():
        Worker(source, [*arguments, "--fill-caches"]).turn()


def main() -> None:
    """Parse the command line, measure both trees, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit", nargs="?", default="HEAD~1", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of processes (default: 5)")
    parts.add_arguments(parser)
    args = parser.parse_args()
    chosen = [part for part in args.only if args.live or not part.startswith("live")]
    if not chosen:
        parser.error("these parts need the number of live environments: --live 1000")
    what = ["--dataset", args.dataset, "--live", str(args.live)]
    what += ["--image", args.image] if args.image else []
    with trees(args.commit) as sources:
        if "golds" in chosen:
            fill_caches(sources, what)
        values = measure(sources, [*what, "--only", *chosen], args.rounds)
    print(f"{'median, ms unless named':<42}{args.commit[:12]:>12}{'now':>10}{'ratio':>8}")
    for figure in values["now"]:
        before, now = (statistics.median(values[name][figure]) for name in ("before", "now"))
        print(f"{figure:<42}{before:>12.3f}{now:>10.3f}{now / before:>8.2f}")


if __name__ == "__main__":
    main()
