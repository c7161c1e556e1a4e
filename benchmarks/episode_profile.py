"""Print where the processor time of a gold episode goes, in the kernel and outside of it.

    python benchmarks/episode_profile.py [DATASET] [--image IMAGE] [--episodes N] [--recycle]

An episode is a reset, the gold as an action, and a submission with its score. The results of golds
come from the gold cache where it has them. `perf` samples the processor time of this process and of
everything that it starts, after some episodes that load code. What the kernel does later in the
background is not in the figures. Needs perf, and rights to sample the kernel.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SAMPLES_PER_SECOND = 4000
WARM_UP = 5  # episodes
SYSTEM_CALL = re.compile(r"(?:__x64_sys_|__arm64_sys_|__do_sys_|ksys_|__sys_)(\w+)$")
MOUNTS = frozenset(
    (
        "mount",
        "umount",
        "umount2",
        "move_mount",
        "open_tree",
        "mount_setattr",
        "pivot_root",
        "cleanup_mnt",
    )
)
PROCESSES = frozenset(("clone", "clone3", "vfork", "execve", "exit_group", "do_exit"))


def play(args: argparse.Namespace) -> None:
    """Play the episodes. Print the pids of this process and of the launcher."""
    import intercode
    from intercode import datasets
    from intercode_sandbox.namespace.launcher import Launcher

    dataset = datasets.load(args.dataset)
    tasks = itertools.cycle(range(len(dataset)))
    settings = {"dataset": dataset, "image": args.image, "recycle": args.recycle}
    with intercode.make("bash", **settings) as env:
        for number in range(-WARM_UP, args.episodes):
            if number == 0:
                Path(args.control).write_text("enable\n")
            env.reset(options={"task": next(tasks)})
            env.step(env.task.gold)
            env.submit()
        Path(args.control).write_text("disable\n")
        print(json.dumps({"owner": os.getpid(), "launcher": Launcher.get().pid}))


def samples(script: str) -> Iterator[tuple[str, int, list[str]]]:
    """Return the name, the pid and the functions, the innermost first, of each sample."""
    for block in script.split("\n\n"):
        head, *lines = block.strip("\n").split("\n")
        if not head.strip():
            continue
        name, pid = head.rsplit(None, 1)
        yield name.strip(), int(pid), [line.split()[1] for line in lines if len(line.split()) > 1]


def part_of(name: str, pid: int, functions: list[str], pids: dict[str, int]) -> str:
    """Return the part of an episode that a sample belongs to."""
    for part, known in pids.items():
        if pid == known:
            return part
    if name == "init":
        return "PID 1"
    if name == "bash":
        return "shells, and what they fork"
    if name != "intercode":
        return "commands"
    found = [call[1] for call in map(SYSTEM_CALL.match, functions) if call]
    calls = {*found, *functions}
    if "unshare" in calls:
        return "supervisor: namespaces"
    if calls & MOUNTS:
        return "supervisor: mounts"
    return "supervisor: fork, exec, exit" if calls & PROCESSES else "supervisor: all else"


def measure(episodes: int) -> None:
    """Run this program again, sample it, and print the table."""
    with tempfile.TemporaryDirectory() as directory:
        data, control = f"{directory}/data", f"{directory}/control"
        os.mkfifo(control)
        command = [
            "perf",
            "record",
            "-q",
            "-o",
            data,
            "-e",
            "cpu-clock",
            "-g",
            "-F",
            str(SAMPLES_PER_SECOND),
            "--delay=-1",
            f"--control=fifo:{control}",
            "--",
            sys.executable,
            *sys.argv,
            "--control",
            control,
        ]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        pids = json.loads(output.splitlines()[-1])
        script = subprocess.run(
            ["perf", "script", "-i", data, "-F", "comm,pid,ip,sym"],
            check=True,
            capture_output=True,
            text=True,
            errors="replace",
        ).stdout
    parts = Counter(part_of(*sample, pids) for sample in samples(script))
    print("| part | ms an episode | % |\n|---|---|---|")
    for part, count in parts.most_common():
        milliseconds = 1e3 * count / SAMPLES_PER_SECOND / episodes
        print(f"| {part} | {milliseconds:.2f} | {100 * count / parts.total():.0f} |")
    print(f"| all | {1e3 * parts.total() / SAMPLES_PER_SECOND / episodes:.2f} | 100 |")


def main() -> None:
    """Parse the command line. Measure, or play for a process that does."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", nargs="?", default="starter")
    parser.add_argument("--image")
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--recycle", action="store_true", help="reset sandboxes in place")
    parser.add_argument("--control", help=argparse.SUPPRESS)  # where perf takes orders
    args = parser.parse_args()
    if args.control:
        play(args)
    else:
        measure(args.episodes)


if __name__ == "__main__":
    main()
