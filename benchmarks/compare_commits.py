"""Print how fast the working tree runs episodes, as a ratio to another commit.

    python benchmarks/compare_commits.py [COMMIT] [--rounds N]

Both trees play the same episodes of the starter suites through ``intercode.make``, in processes
that take turns. The figures are medians in milliseconds; a ratio above 1 means that the working
tree is slower. Needs git and a machine on which sandboxes work.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EPISODES = """
import json, sys, time
start = time.perf_counter()
import intercode
times = {"import": [1e3 * (time.perf_counter() - start)]}

def measure(name, call):
    start = time.perf_counter()
    call()
    times.setdefault(name, []).append(1e3 * (time.perf_counter() - start))

ACTIONS = {"bash": "ls -la ~ | wc -l", "sql": "SELECT 1 + 1", "python": "print(sum(range(10)))"}
for kind, action in ACTIONS.items():
    with intercode.make(kind, dataset="starter" if kind == "bash" else "starter:" + kind) as env:
        for i in range(12):
            measure(kind + " reset", lambda: env.reset(options={"task": i}))
            for _ in range(3):
                measure(kind + " step", lambda: env.step(action))
            measure(kind + " score", lambda: env.score())
            if i == 1:  # the first two episodes load code and start workers
                for call in ("reset", "step", "score"):
                    del times[f"{kind} {call}"]
json.dump(times, sys.stdout)
"""


def main() -> None:
    """Parse the command line, measure both trees in turns, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", nargs="?", default="HEAD~1", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=5, help="processes of each tree (default: 5)")
    args = parser.parse_args()
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
            play_episodes(tree)  # compiles programs and fills caches
        times: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in trees}
        for _ in range(args.rounds):
            for name, tree in trees.items():
                for figure, values in play_episodes(tree).items():
                    times[name][figure] += values
    print(f"{'milliseconds, median':<22}{args.commit:>12}{'now':>10}{'ratio':>8}")
    for figure in times["now"]:
        before, now = (statistics.median(times[name][figure]) for name in ("before", "now"))
        print(f"{figure:<22}{before:>12.2f}{now:>10.2f}{now / before:>8.2f}")


def play_episodes(source: Path) -> dict[str, list[float]]:
    """Play the episodes with the package in ``source``; return the milliseconds of each call."""
    done = subprocess.run(
        [sys.executable, "-c", EPISODES], env={**os.environ, "PYTHONPATH": str(source)},
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    times: dict[str, list[float]] = json.loads(done.stdout)
    return times


if __name__ == "__main__":
    main()
