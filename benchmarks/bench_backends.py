"""Times the sandbox operations of every back end: medians of rounds in which all take turns.

    python benchmarks/bench_backends.py [--image recipe:nl2bash] [--dataset starter]
        [--rounds 15] [--live 6] [--seconds 8] [--kinds namespace docker podman]

Run it in .ci/docker and .ci/podman. For each engine it also times removing a container of the same
image and creating one, which is how other frameworks reset.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import bench_episodes
from measuring import Contender, Processor, take_turns

import intercode
from intercode import datasets
from intercode.core.errors import InterCodeError
from intercode.core.types import Dataset, Task
from intercode.environments.base.env import InterCodeEnv
from intercode.results.report import render
from intercode.results.tables import Cell, Table
from intercode.sessions.bash.persistent import BashSession
from intercode_sandbox import SandboxSpec, images, open_sandbox
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.supervisor.process_table import list_descendants
from support import backend, traces

KINDS = backend.NAMES
TASKS = Dataset("bench", "bash", (Task("bench/0", "Make 5.", gold="echo 5 > /tmp/five"),))
FILES = "mkdir /srv/d; for i in {1..199}; do echo $i > /srv/d/$i; done"
REMOVED = "the engine's `rm --force` and `run --detach`"
RESET = "reset of an environment"
WARM = 0.3  # seconds to prewarm the next sandbox; not counted


class Bench:
    """The operations to time on one back end. Closing the stack ends its sandboxes."""

    def __init__(self, kind: str, image: str, stack: ExitStack) -> None:
        self.kind, self.image, self.stack = kind, image, stack
        self.spec = SandboxSpec(images.resolve(image))
        self.sandboxes: list[BaseSandbox] = []
        self.made = 0
        self.copies: list[InterCodeEnv] = []

    def env(self) -> InterCodeEnv:
        """Return an environment in an episode."""
        env = intercode.make("bash", dataset=TASKS, image=self.image, backend=self.kind)
        self.stack.callback(env.close)
        env.reset()
        return env

    def contenders(self) -> dict[str, Contender]:
        """Return every operation, by its row in the table."""
        sandbox = self.stack.enter_context(open_sandbox(self.spec, self.kind))
        session = self.stack.enter_context(closing(BashSession(sandbox)))
        played, full = self.env(), self.env()
        full.step(FILES)
        found = {
            "create a sandbox while none waits, first output": Contender(self.create, self.end),
            RESET: Contender(played.reset, lambda: (played.step("ls > /tmp/x"), time.sleep(WARM))),
            "the same, at once after an episode": Contender(
                played.reset, lambda: played.step("ls > /tmp/x")
            ),
            "run `true` in a live sandbox": Contender(lambda: sandbox.run(["true"]), in_a_row=5),
            "step `true` in the session": Contender(lambda: session.run("true", 10), in_a_row=5),
            "step in an environment": Contender(lambda: played.step("true"), in_a_row=3),
            "snapshot, 200 changed files": Contender(lambda: full.snapshot().close()),
            "fork, 200 changed files": Contender(
                lambda: self.copies.extend(full.fork(1)), self.end
            ),
            "score": Contender(played.score, lambda: played.step("ls > /tmp/x")),
        }
        if self.kind != "namespace":
            found[REMOVED] = removal(self.kind, self.stack)
        return found

    def create(self) -> None:
        self.made += 1  # a new host name, so that no recycled sandbox matches
        spec = replace(self.spec, hostname=f"bench-{self.made}")
        self.sandboxes.append(open_sandbox(spec, self.kind))
        assert self.sandboxes[-1].run(["bash", "-c", "true"]).ok

    def end(self) -> None:
        while self.sandboxes:
            self.sandboxes.pop().close()
        while self.copies:
            self.copies.pop().close()
        time.sleep(0.05)  # time for the kernel to remove it

    def memory(self, live: int) -> tuple[float, float]:
        """Measure the megabytes of a live sandbox with a shell.

        Returns the proportional set sizes of its processes and those of the engine, and the
        decrease of the available memory.
        """
        before = available()
        with ExitStack() as held:
            pids: set[int] = set()
            for _ in range(live):
                sandbox = held.enter_context(open_sandbox(self.spec, self.kind))
                held.callback(BashSession(sandbox).close)
                pids |= {
                    sandbox.supervisor_pid,
                    *(member.pid for member in list_descendants(sandbox.supervisor_pid)),
                }
                if self.kind != "namespace":  # processes of the engine, outside the sandbox
                    pids.add(parent_of(sandbox.supervisor_pid))
            time.sleep(0.5)
            own = tuple((pid, traces.started(pid)) for pid in pids)
            return traces.proportional(own) / live / 1e6, (before - available()) / live / 1e6


def removal(engine: str, stack: ExitStack) -> Contender:
    """Remove a running container of the image of the sandboxes, and create another one."""
    ours = backend.containers_of(os.getpid(), engine)
    image = requested(engine, "inspect", "--format={{.Image}}", ours[0])
    start = ("run", "--detach", "--network=none", "--entrypoint=/bin/sleep", image, "86400")
    remove = ("rm", "--force", *(["--time=0"] if engine == "podman" else []))  # docker never waits
    running = [requested(engine, *start)]
    stack.callback(lambda: requested(engine, *remove, running[0]))

    def recycle() -> None:
        requested(engine, *remove, running[0])
        running[0] = requested(engine, *start)

    return Contender(recycle)


def requested(*words: str) -> str:
    """Return what a program prints. Raises CalledProcessError."""
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def available() -> int:
    """Return the bytes of memory that are available."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(x.split()[1]) for x in lines if x.startswith("MemAvailable")) << 10


def parent_of(pid: int) -> int:
    """Return the parent of a process."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def workers(kind: str, args: argparse.Namespace) -> tuple[float, float]:
    """Return the gold episodes per second of two workers, and the share of them that was solved."""
    settings = {"dataset": datasets.load(args.dataset), "image": args.image, "backend": kind}
    cpu = Processor()
    try:
        rate = bench_episodes.measure(settings, 2, args.seconds, cpu)
    finally:
        cpu.close()
    return rate.episodes / rate.seconds, 100 * rate.solved / rate.episodes


def answering(kinds: list[str], image: str) -> tuple[list[str], list[str]]:
    """Return the back ends that provide a sandbox on this machine, and the reasons why others do
    not."""
    found, notes = [], []
    for kind in kinds:
        try:
            open_sandbox(SandboxSpec(images.resolve(image)), kind).close()
            found.append(kind)
        except InterCodeError as e:
            notes.append(f"no {kind} here: {e}")
    return found, notes


def measured(args: argparse.Namespace, kinds: list[str]) -> dict[str, dict[str, Cell]]:
    """Return the table: for each row, the figure of each back end."""
    rows: dict[str, dict[str, Cell]] = {}
    with ExitStack() as stack:
        entrants: dict[str, Contender] = {}
        for kind in kinds:
            for what, contender in Bench(kind, args.image, stack).contenders().items():
                entrants[f"{kind}: {what}"] = contender
        for name, ms in take_turns(entrants, args.rounds).items():
            kind, _, what = name.partition(": ")
            rows.setdefault(f"{what}, ms", {})[kind] = ms
    resets, removals = rows[f"{RESET}, ms"], rows.get(f"{REMOVED}, ms", {})
    rows["that is so many resets"] = {k: removals[k] / resets[k] for k in removals}  # type: ignore[operator]
    each: Callable[[str], tuple[float, float]]
    for names, each in (
        (
            ("MB per live sandbox, processes", "MB per live sandbox, less available"),
            lambda kind: memory(kind, args),
        ),
        (("gold episodes per s, 2 workers", "of them solved, %"), lambda kind: workers(kind, args)),
    ):
        for kind in kinds:
            for name, number in zip(names, each(kind), strict=True):
                rows.setdefault(name, {})[kind] = number
    return rows


def memory(kind: str, args: argparse.Namespace) -> tuple[float, float]:
    with ExitStack() as stack:
        return Bench(kind, args.image, stack).memory(args.live)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--image", default="recipe:nl2bash")
    parser.add_argument("--dataset", default="starter")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--live", type=int, default=6, help="sandboxes to measure the memory of")
    parser.add_argument("--seconds", type=float, default=8.0, help="of the two workers")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    args = parser.parse_args()
    kinds, notes = answering(args.kinds, args.image)
    rows = measured(args, kinds)
    print(
        render(
            [
                Table(
                    "back ends",
                    f"{args.image}, medians over {args.rounds} rounds in turns",
                    ("what", *kinds),
                    tuple(
                        (what, *(cells.get(kind) for kind in kinds)) for what, cells in rows.items()
                    ),
                    notes=tuple(notes),
                    digits=tuple((kind, 2) for kind in kinds),
                )
            ]
        )
    )


if __name__ == "__main__":
    main()
