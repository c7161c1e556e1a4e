"""Scores logs with another commit's rewards and with those of the working tree.

    python benchmarks/scoring_versions.py COMMIT LOG [LOG ...] [--parallel N]

Each log is executed again with the profile `standard` of both trees (`intercode replay --score`).
A line has the cells of the paper's tables for one log, in both versions of the scoring: how many
episodes are solved, and the mean of their best rewards. The last columns count the episodes that
only one of the versions solves, and those whose best reward differs. Needs git, and the data of the
logs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from compare_commits import trees

HEAD = (
    "| log | scoring | episodes | solved | mean of the best | won | lost | changed |\n"
    "|---|---|---:|---:|---:|---:|---:|---:|"
)
SUCCESS = 1 - 1e-9


class Graded(NamedTuple):
    """A log as one tree scores it: the version, and the best reward of each episode."""

    scoring: str
    best: dict[tuple[str, int], float]

    @property
    def solved(self) -> set[tuple[str, int]]:
        return {key for key, value in self.best.items() if value >= SUCCESS}

    @property
    def mean(self) -> float:
        return sum(self.best.values()) / len(self.best)


def grade(source: Path, log: Path, parallel: int) -> Graded:
    """Execute a log again with the package of one tree."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "graded")
        scoring = ["replay", str(log), "--score", "standard"]
        if (source / "intercode" / "cli" / "regrade.py").exists():  # a tree of before
            scoring = ["regrade", str(log), "--profile", "standard"]
        command = [sys.executable, "-m", "intercode", *scoring, "--out", str(out)]
        command += ["--parallel", str(parallel)]
        environment = {**os.environ, "PYTHONPATH": str(source)}
        done = subprocess.run(command, check=False, env=environment, stdout=subprocess.DEVNULL)
        if done.returncode not in (0, 1):  # 1: some episodes could not be scored
            sys.exit(done.returncode)
        run = json.loads((out / "run.json").read_text("utf-8"))
        best: dict[tuple[str, int], float] = {}
        for n, line in enumerate((out / "trajectories.jsonl").read_bytes().split(b"\n")):
            if line:
                episode = json.loads(line)
                # a tree of before writes the score as reward
                scores = [s.get("score", s.get("reward")) or 0.0 for s in episode["steps"]]
                best[episode["task"], n] = max([0.0, *scores])
    return Graded(run["scoring"], best)


def line(log: Path, before: Graded, now: Graded) -> str:
    """Return the line of a log in the table."""
    won, lost = len(now.solved - before.solved), len(before.solved - now.solved)
    changed = sum(abs(now.best[key] - value) > 1e-9 for key, value in before.best.items())
    cells = [
        f"`{log.stem}`",
        f"{before.scoring}, {now.scoring}",
        str(len(now.best)),
        f"{len(before.solved)}, {len(now.solved)}",
        f"{before.mean:.2f}, {now.mean:.2f}",
        str(won),
        str(lost),
        str(changed),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Score the logs, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit", help="the commit whose scoring is compared")
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG")
    parser.add_argument("--parallel", type=int, default=2, help="episodes at the same time")
    args = parser.parse_args()
    with trees(args.commit) as sources:
        print(HEAD)
        for log in args.logs:
            before, now = (grade(sources[n], log, args.parallel) for n in ("before", "now"))
            print(line(log, before, now), flush=True)


if __name__ == "__main__":
    main()
