"""Compares sandboxes with other ways to run a command: medians of rounds that take turns.

    python benchmarks/bench_sandbox.py [--rounds 40] [--seconds 8] [--authors CHECKOUT]

The others are a plain `bash -c true`, bubblewrap if it is installed, `docker exec` if a daemon
answers that has the image `intercode-test` (run this in .ci/docker), and the authors' environment
if a checkout of their repository is given (or INTERCODE_AUTHORS; INTERCODE_AUTHORS_PYTHON has their
dependencies): see bench_episodes.py, whose table comes last."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import bench_episodes
import peers
from measuring import Contender, take_turns

import intercode
from intercode.core.paths import cache_root
from intercode.core.types import Dataset, LayerSpec, Task
from intercode.results.report import render
from intercode.results.tables import Table
from intercode.sandbox import SandboxSpec, images, open_sandbox
from intercode.sandbox.contract import BaseSandbox
from intercode.sessions.bash.persistent import BashSession

PLAIN, EXEC = "plain `bash -c true`", "`docker exec`, `bash -c true`"
CREATE, STEP = "create a sandbox, first output", "step `true` in the session"
RESET, CHANGES, FORK = (
    "reset, pool warm",
    "changes, 60 of 20,000 files in 6 of 200 directories",
    "fork, 200 changed files",
)
TARGETS = {
    CREATE: "2 x plain", STEP: "0.2 ms, docker exec / 100", RESET: "1 ms", CHANGES: "0.5 ms",
    FORK: "8 ms",
}  # fmt: skip
HOST = SandboxSpec(images.resolve("host"))
WARM = 0.1  # seconds to prewarm the next sandbox; not counted


class SandboxCreation:
    """Times the creation of sandboxes, and closes them outside the measured time."""

    def __init__(self) -> None:
        self.open: list[BaseSandbox] = []

    def create(self) -> None:
        self.open.append(open_sandbox(HOST))
        assert self.open[-1].run(["bash", "-c", "true"]).ok

    def close(self) -> None:
        while self.open:
            self.open.pop().close()
        time.sleep(0.02)  # time for the kernel to remove it


@contextmanager
def large_tree() -> Iterator[SandboxSpec]:
    """Return a specification with a layer of 20,000 files in 200 directories."""
    home = Path(tempfile.mkdtemp(prefix="bench-", dir=cache_root()))
    try:
        for n in range(200):
            directory = home / "tree" / "srv" / str(n)
            directory.mkdir(parents=True)
            for m in range(100):
                (directory / str(m)).write_text(f"{n} {m}\n")
        yield SandboxSpec(HOST.image, (images.resolve_layer(LayerSpec("dir", home / "tree")),))
    finally:
        shutil.rmtree(home)


def resets(stack: ExitStack) -> Contender:
    """Time ``reset`` of an environment whose next sandbox is ready."""
    tasks = Dataset("bench", "bash", (Task("bench/0", "Print x.", gold="echo x"),))
    env = stack.enter_context(intercode.make("bash", dataset=tasks))
    return Contender(env.reset, lambda: (env.step("true"), time.sleep(WARM)), every=2)


def forks(stack: ExitStack) -> Contender:
    """Time ``fork`` of an environment with 200 changed files."""
    tasks = Dataset("bench", "bash", (Task("bench/0", "Print x.", gold="echo x"),))
    env = stack.enter_context(intercode.make("bash", dataset=tasks))
    env.reset()
    env.step("mkdir /srv/d; for i in {1..199}; do echo $i > /srv/d/$i; done")
    twins: list[intercode.environments.base.env.InterCodeEnv] = []

    def end() -> None:
        while twins:
            twins.pop().close()
        time.sleep(0.02)

    return Contender(lambda: twins.extend(env.fork(1)), end, every=2)


def ours(stack: ExitStack) -> dict[str, Contender]:
    """Return every operation of a sandbox, its session and its environment."""
    created = SandboxCreation()
    live = stack.enter_context(open_sandbox(HOST))
    session = stack.enter_context(closing(BashSession(live)))
    tree = stack.enter_context(open_sandbox(stack.enter_context(large_tree())))
    change = (  # 30 new files, 24 changed, 6 deleted
        "for i in {0..5}; do touch /srv/$i/new{0..4}; rm /srv/$i/9; "
        "for j in {0..3}; do echo changed > /srv/$i/$j; done; done"
    )
    assert tree.run(["bash", "-c", change]).ok
    assert len(tree.changes()) == 60
    return {
        CREATE: Contender(created.create, created.close),
        "run `true` in a live sandbox": Contender(lambda: live.run(["true"]), in_a_row=5),
        STEP: Contender(lambda: session.run("true", 10), in_a_row=5),
        f"{STEP}, 100 in a row": Contender(lambda: session.run("true", 10), in_a_row=100),
        "step `ls /usr/bin`": Contender(lambda: session.run("ls /usr/bin", 10)),
        CHANGES: Contender(tree.changed_paths, in_a_row=5),
        "the same with kinds, modes, sizes": Contender(
            lambda: tree.changes(digests=False), in_a_row=5
        ),
        "the same with digests": Contender(tree.changes, in_a_row=5),
        RESET: resets(stack),
        FORK: forks(stack),
    }


def contenders(stack: ExitStack) -> tuple[dict[str, Contender], list[str]]:
    """Return all contenders, and the reasons why others cannot run."""
    plain = ["bash", "-c", "true"]
    found = {PLAIN: Contender(lambda: subprocess.run(plain, check=True), in_a_row=5)}
    notes = []
    bubble = peers.bubblewrap()
    if isinstance(bubble, str):
        notes.append(bubble)
    else:
        found["bubblewrap, all namespaces"] = bubble
    if why := peers.without_docker():
        notes.append(why)
    else:
        found[EXEC] = peers.executing(stack.enter_context(peers.running_container()))
    return {**found, **ours(stack)}, notes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    bench_episodes.add_arguments(parser)
    args = parser.parse_args()
    with ExitStack() as stack:
        entrants, notes = contenders(stack)
        took = take_turns(entrants, args.rounds)
    rows = []
    for name, ms in took.items():
        faster = took[EXEC] / ms if EXEC in took else ""
        rows.append((name, ms, ms / took[PLAIN], faster, TARGETS.get(name, "")))
    kernel = Path("/proc/version").read_text().split()[2]
    print(render([Table(
        "sandbox", f"Medians over {args.rounds} rounds in turns; kernel {kernel}",
        ("what", "ms", "x plain bash", "docker exec is x", "target"),
        tuple(rows), notes=tuple(notes),
        digits=(("ms", 2), ("x plain bash", 2), ("docker exec is x", 1)),
    )]))  # fmt: skip
    print(render(bench_episodes.tables(args)))


if __name__ == "__main__":
    main()
