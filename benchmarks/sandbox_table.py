"""Prints the speed and memory of sandboxes beside other ways to run a command, as a table.

    INTERCODE_AUTHORS=CHECKOUT .ci/docker .venv/bin/python benchmarks/sandbox_table.py [COMMIT]
        [--rounds 3] [--minutes 9] [--live-rounds 3] [--live 1000] [--skip PART ...]

The columns are a commit, the working tree, a plain bash, bubblewrap, Docker, and the authors'
environment on Docker; "-" where one has no such operation or is missing here. All take turns of
some milliseconds within the run: see compare_commits.py. The figures are medians. Those of gold
episodes are medians over rounds of the mean over all tasks; the authors' are the mean over their
sound tasks of file system 1, in turns, and the whole machine's processor time. Takes less than ten
minutes on two idle cores, as root. INTERCODE_AUTHORS is a checkout of the authors' repository, and
INTERCODE_AUTHORS_PYTHON an interpreter with its dependencies. Start it well before a full hour,
until which some cached golds hold.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import statistics
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import parts
import peers
import plain_golds
from compare_commits import ROOT, Values, fill_caches, measure, trees
from measuring import Contender

from intercode import datasets

DATASET, IMAGE = "nl2bash:verified", "recipe:nl2bash"
PLAIN, BUBBLEWRAP, DOCKER, AUTHORS = "plain bash", "bubblewrap", "Docker", "authors"
SMALL = ("golds", "sandboxes", "resets", "changes", "forks")
LIVE = "live_sandboxes"
CPU = ", cpu"
ROWS: tuple[tuple[str, str, str, int], ...] = (  # figure, what it is, target, decimal places
    (parts.RECYCLED + CPU, "gold episode of nl2bash, recycled sandboxes: processor ms", "8", 1),
    (parts.GOLD + CPU, "gold episode of nl2bash, new sandboxes: processor ms", "8", 1),
    (parts.RECYCLED, "gold episode of nl2bash, recycled sandboxes: ms", "", 1),
    (parts.GOLD, "gold episode of nl2bash, new sandboxes: ms", "", 1),
    (parts.STEP, "step of `true`, 5 in a row after other work: ms", "0.2", 2),
    (parts.ROW, "step of `true`, 50 in a row: ms", "0.2", 2),
    (parts.CREATE, "create to first output: ms", "2 x plain bash", 2),
    (parts.CREATE + CPU, "create, first output, close: processor ms", "", 2),
    (parts.RUN, "`true` in a live sandbox: ms", "", 2),
    (parts.RESET, "reset, next sandbox ready: ms", "1", 2),
    (parts.CHANGES, "changes, 60 of 20,000 files in 6 of 200 directories: ms", "0.5", 2),
    (parts.FORK, "fork with 200 files: ms", "8", 2),
    (parts.LESS, "{live} live sandboxes: decrease of available memory, MB", "1,000", 0),
    (parts.GROWN, "{live} live sandboxes: increase of the parts that they use, MB", "", 0),
    (parts.CREATED, "sandboxes created a second", "300", 0),
)


class PlainShell:
    """A live bash without a sandbox that runs commands from a pipe."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            ["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def step(self) -> None:
        """Run `true`, and wait until it has ended."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write("true; echo $?\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "0\n"

    def close(self) -> None:
        """End the shell."""
        self._process.communicate()


class Others:
    """The other ways to run a command, whose turns are between those of the trees."""

    def __init__(self, stack: ExitStack, checkout: str | None) -> None:
        self.values: dict[str, Values] = defaultdict(lambda: defaultdict(list))
        self.notes: list[str] = []
        self._turns = 0
        shell = stack.enter_context(closing(PlainShell()))
        self._contenders: dict[tuple[str, str], Contender] = {
            (PLAIN, parts.CREATE): Contender(
                lambda: subprocess.run(parts.PLAIN, check=True), in_a_row=3
            ),
            (PLAIN, parts.STEP): Contender(shell.step, in_a_row=5),
        }
        bubble = peers.bubblewrap()
        if isinstance(bubble, str):
            self.notes.append(bubble)
        else:
            self._contenders[BUBBLEWRAP, parts.CREATE] = bubble
        self._authors: peers.Authors | None = None
        if why := peers.without_docker():
            self.notes.append(why)
            return
        container = stack.enter_context(peers.running_container())
        self._contenders[DOCKER, parts.RUN] = peers.executing(container)
        self._contenders[DOCKER, parts.CREATE] = peers.creating()
        if checkout:
            self._authors = stack.enter_context(closing(peers.Authors(Path(checkout))))
        else:
            self.notes.append("INTERCODE_AUTHORS is not set: no authors' environment")

    def turn(self) -> bool:
        """Measure some of them; there is always another turn."""
        for (column, figure), contender in self._contenders.items():
            if self._turns % contender.every == 0:
                for _ in range(contender.in_a_row):
                    self._time(column, figure, contender.work)
        if self._authors and self._turns % 2 == 0:
            self._play(self._authors)
        self._turns += 1
        return True

    def _time(self, column: str, figure: str, work: Callable[[], object]) -> None:
        start = time.perf_counter()
        work()
        self.values[column][figure].append(1000 * (time.perf_counter() - start))

    def _play(self, authors: peers.Authors) -> None:
        """Play an episode of the authors' environment. Its containers are always recycled."""
        found, values = authors.play(), self.values[AUTHORS]
        values[parts.RECYCLED].append(found["reset"] + found["step"] + found["submit"])
        values[parts.RECYCLED + CPU].append(found["cpu"])
        values[parts.RESET].append(found["reset"])
        values[parts.STEP].append(authors.step_true())


def numbers(name: str, figure: str, values: Values, digits: int) -> str:
    """Return a cell."""
    found = values.get(figure)
    if not found:
        return "-"
    mean = name == AUTHORS and figure.startswith(parts.GOLD)  # its tasks differ in length
    middle = statistics.fmean(found) if mean else statistics.median(found)
    return f"{middle:,.{digits}f}"


def short(commit: str) -> str:
    """Return the short hash of a commit."""
    words = ["git", "rev-parse", "--short=8", commit]
    return subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def processor_name() -> str:
    """Return the model of the processors."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "unknown")


def main() -> None:
    """Parse the command line, measure, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit", nargs="?", default="HEAD~1", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=3, help="pairs of processes, at most")
    parser.add_argument("--minutes", type=float, default=9, help="starts no round that ends later")
    parser.add_argument("--live-rounds", type=int, default=3, help="of the live sandboxes")
    parser.add_argument("--live", type=int, default=1000, help="sandboxes that live at once")
    parser.add_argument("--skip", nargs="+", choices=(*SMALL, LIVE), default=[], metavar="PART")
    args = parser.parse_args()
    load, started = os.getloadavg()[0], time.monotonic()
    chosen = [part for part in SMALL if part not in args.skip]
    what = ["--dataset", DATASET, "--image", IMAGE, "--live", str(args.live), "--only"]
    with ExitStack() as stack:
        sources = stack.enter_context(trees(args.commit))
        others = Others(stack, os.environ.get("INTERCODE_AUTHORS"))
        columns: dict[str, Values] = {name: defaultdict(list) for name in sources}
        if "golds" in chosen:
            fill_caches(sources, [*what, "golds"])

        def add(names: list[str], rounds: int, contenders: list[Others]) -> None:
            for name, found in measure(sources, [*what, *names], rounds, contenders).items():
                for figure, more in found.items():
                    columns[name][figure] += more

        if LIVE not in args.skip:
            add([LIVE], args.live_rounds, [])
        rounds, longest = 0, 0.0
        while rounds < args.rounds and time.monotonic() + longest < started + 60 * args.minutes:
            start = time.monotonic()
            add(chosen, 1, [others])
            if "golds" in chosen:
                plain = plain_golds.processor_ms(datasets.load(DATASET), IMAGE, rounds=1)
                others.values[PLAIN][parts.RECYCLED + CPU].append(plain)
            rounds, longest = rounds + 1, max(longest, time.monotonic() - start)
    columns |= {name: others.values[name] for name in (PLAIN, BUBBLEWRAP, DOCKER, AUTHORS)}
    dirty = subprocess.run(
        ["git", "diff", "--quiet", "HEAD", "--", "packages"], cwd=ROOT
    ).returncode
    titles = [f"before ({short(args.commit)})", f"now ({short('HEAD')}{' with changes' * dirty})"]
    titles += [PLAIN, BUBBLEWRAP, DOCKER, "the authors' environment"]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 30
    print(
        f"{datetime.date.today()}, {os.cpu_count()} x {processor_name()}, {memory} GiB, "
        f"Linux {platform.release()}, Python {platform.python_version()}; load {load:.1f} at the "
        f"start; {rounds} rounds, {args.live_rounds} of live sandboxes, in "
        f"{time.monotonic() - started:.0f} s\n"
    )
    print(f"| figure | target | {' | '.join(titles)} |\n|{'---|' * (len(titles) + 2)}")
    for figure, what_it_is, target, digits in ROWS:
        cells = [numbers(name, figure, values, digits) for name, values in columns.items()]
        if any(cell != "-" for cell in cells):
            title = what_it_is.format(live=f"{args.live:,}")
            print(f"| {title} | {target or '-'} | {' | '.join(cells)} |")
    print()
    for note in others.notes:
        print(note)


if __name__ == "__main__":
    main()
