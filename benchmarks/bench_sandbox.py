"""What a sandbox costs beside a plain `bash -c true`: medians of one run, and ratios.

    python benchmarks/bench_sandbox.py [--rounds 50] [--container NAME]

``--container`` names a running Docker container to compare ``docker exec`` with; ``bwrap`` is
compared where it is installed.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from intercode import images
from intercode.report import render
from intercode.report.tables import Table
from intercode.sandboxes import SandboxSpec, open_sandbox
from intercode.sessions.bash import BashSession

SPEC = SandboxSpec(images.resolve("host"))
BWRAP = [
    "bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib",
    "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/bin", "/bin", "--proc", "/proc",
    "--dev", "/dev", "--tmpfs", "/tmp", "bash", "-c", "true",
]  # fmt: skip


def median(work: Callable[[], object], rounds: int, after: Callable[[], object] = int) -> float:
    """Milliseconds that ``work`` takes, the median of ``rounds``; ``after`` is not counted."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1000)
        after()
    return statistics.median(times)


def create_and_run() -> None:
    with open_sandbox(SPEC) as box:
        assert box.run(["bash", "-c", "true"]).ok


def peers(rounds: int, container: str | None) -> list[tuple[str, float]]:
    """Other ways of starting a command."""
    rows = []
    if shutil.which("bwrap"):
        rows.append(("bubblewrap", median(lambda: subprocess.run(BWRAP, check=True), rounds)))
    if container:
        command = ["docker", "exec", container, "bash", "-c", "true"]
        took = median(lambda: subprocess.run(command, check=True), max(5, rounds // 5))
        rows.append(("docker exec", took))
    return rows


def ours(rounds: int) -> list[tuple[str, float]]:
    """Every verb of a sandbox and of its session."""
    create_and_run()
    rows = [("create, run, close", median(create_and_run, rounds))]
    with open_sandbox(SPEC) as box:
        rows.append(("run a command in a live box", median(lambda: box.run(["true"]), rounds)))
        session = BashSession(box)
        rows.append(("step `true`", median(lambda: session.run("true", 10), rounds * 10)))
        rows.append(("step `ls /usr/bin`", median(lambda: session.run("ls /usr/bin", 10), rounds)))
        rows.append(("changes, none", median(box.changes, rounds)))
        session.run("mkdir /srv/d; for i in {1..59}; do echo $i > /srv/d/$i; done", 10)
        rows.append(("changes, 60 entries", median(box.changes, rounds)))
        rows.append(("clone, 60 entries", median(lambda: box.clone().close(), rounds)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--container")
    args = parser.parse_args()
    plain = ["bash", "-c", "true"]
    base = median(lambda: subprocess.run(plain, check=True), args.rounds)
    rows = [("plain `bash -c true`", base), *peers(args.rounds, args.container), *ours(args.rounds)]
    table = Table(
        "sandbox",
        f"Medians over {args.rounds} rounds; kernel {Path('/proc/version').read_text().split()[2]}",
        ("what", "ms", "x plain bash"),
        tuple((name, took, took / base) for name, took in rows),
        digits=(("ms", 2), ("x plain bash", 2)),
    )
    print(render([table], "text"))


if __name__ == "__main__":
    main()
