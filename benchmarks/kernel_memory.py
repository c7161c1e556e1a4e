"""Print the memory that the kernel takes for one live sandbox, and for what.

    python benchmarks/kernel_memory.py [--sandboxes N] [--image IMAGE]

Opens sandboxes without sessions, and divides what the kernel's own memory grew by their number.
Other programs that start and end meanwhile are in the figures. Needs root and control groups.

Each file system has a shrinker, and each control group that limits memory holds a unit of 1 KB
(`kmalloc-1k`) for every 64 shrinkers of the machine, up to the most that there have been since it
started. So these units grow with the square of the number of live sandboxes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from pathlib import Path

from bench_density import machine

from intercode_sandbox import SandboxSpec, images, open_sandbox
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.namespace.launcher import Launcher

KINDS = ("SUnreclaim", "PageTables", "KernelStack", "Percpu")
CACHES = 8
SHRINKERS_PER_UNIT, UNIT_CACHE = 64, "kmalloc-1k"
GROUPS = 100  # empty control groups
UNSEEN_FILE_SYSTEMS = 1  # of message queues, which no mount shows


def slab_caches() -> dict[str, tuple[int, int]]:
    """Return the number of objects and their size in bytes of each cache of the kernel."""
    rows = [line.split() for line in Path("/proc/slabinfo").read_text().splitlines()[2:]]
    return {row[0]: (int(row[1]), int(row[3])) for row in rows}


def count_mounts(sandbox: BaseSandbox) -> tuple[int, int]:
    """Return the numbers of mounts and of file systems that a sandbox has of its own."""
    text = sandbox.run(["cat", "/proc/self/mountinfo"]).output
    mounts = [line.split() for line in text.splitlines()]
    own = {mount[2] for mount in mounts if mount[2].startswith("0:") and mount[-2] != "devices"}
    return len(mounts), len(own) + UNSEEN_FILE_SYSTEMS


def units_of_group() -> float:
    """Return how many units of shrinkers the kernel makes for an empty control group."""
    found = Launcher.get().cgroup_directories
    parent = next((path for path in found if "/memory/" in path), found[0])
    paths = [f"{parent}/empty{number}" for number in range(GROUPS)]
    before = slab_caches()[UNIT_CACHE][0]
    for path in paths:
        os.mkdir(path)
    more = slab_caches()[UNIT_CACHE][0] - before
    for path in paths:
        os.rmdir(path)
    return more / GROUPS


def main() -> None:
    """Parse the command line, measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sandboxes", type=int, default=200)
    parser.add_argument("--image", default="host")
    args = parser.parse_args()
    spec = SandboxSpec(images.resolve(args.image))
    with contextlib.ExitStack() as live:
        mounts, systems = count_mounts(live.enter_context(open_sandbox(spec)))
        time.sleep(1)  # for the supervisors that wait for the next sandboxes
        memory, caches = machine(), slab_caches()
        for _ in range(args.sandboxes):
            live.enter_context(open_sandbox(spec))
        time.sleep(1)
        more = {kind: machine()[kind] - memory[kind] for kind in KINDS}
        objects = {
            name: (count - caches.get(name, (0, 0))[0], size)
            for name, (count, size) in slab_caches().items()
        }
        group = units_of_group()
    print(f"image {args.image}: {mounts} mounts, {systems} file systems in each sandbox")
    units = systems * 1000 / SHRINKERS_PER_UNIT
    print(f"1,000 live: {units:.0f} units of shrinkers for each group, {units:.0f} MB for all")
    print(f"an empty control group of this machine now: {group:.0f} units")
    print("| KB for each of these sandboxes | |\n|---|---|")
    for kind, total in more.items():
        print(f"| {kind} | {total / args.sandboxes / 1024:.1f} |")
    print("| largest caches | objects for each | bytes of one | KB |\n|---|---|---|---|")
    largest = sorted(objects.items(), key=lambda row: -row[1][0] * row[1][1])[:CACHES]
    for name, (count, size) in largest:
        each = count / args.sandboxes
        print(f"| {name} | {each:.0f} | {size} | {each * size / 1024:.0f} |")


if __name__ == "__main__":
    main()
