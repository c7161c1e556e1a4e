"""Prints the mean reward of doing nothing, for each starter suite and each family of tasks.

    python benchmarks/doing_nothing.py [--only bash sql python code ctf] [--draw N]

An episode is reset and scored, without an action. N tasks of each difficulty are drawn of each
family (1 by default). The exit status is 1 if a task pays more than 0, and the line of its family
names it.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict

import intercode
from intercode.datasets import load

SUITES = ("bash", "sql", "python", "code", "ctf")


def rewards(name: str, draw: int) -> dict[str, list[tuple[str, float]]]:
    """Return what each task of a dataset pays before the first action, by suite or family."""
    dataset = load(name)
    found: dict[str, list[tuple[str, float]]] = defaultdict(list)
    with intercode.make(dataset.environment, dataset) as env:
        for index, task in enumerate(dataset.tasks):
            group = name if name.startswith("starter") else "/".join(task.id.split("/")[1:3])
            for seed in range(draw):
                env.reset(seed=seed, options={"task": index})
                found[group].append((env.task.id, env.score().value))
    return found


def main() -> int:
    """Play, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=SUITES, default=SUITES)
    parser.add_argument("--draw", type=int, default=1, help="tasks of each difficulty and family")
    args = parser.parse_args()
    print("| tasks | played | mean reward |\n|---|---:|---:|")
    paid = 0
    for suite in args.only:
        for name, draw in ((f"starter:{suite}", 1), (f"families:{suite}", args.draw)):
            for group, values in rewards(name, draw).items():
                mean = sum(value for _, value in values) / len(values)
                more = [task for task, value in values if value > 0]
                paid += len(more)
                named = f" {', '.join(more)}" if more else ""
                print(f"| `{group}` | {len(values)} | {mean:.2f} |{named}", flush=True)
    return 1 if paid else 0


if __name__ == "__main__":
    sys.exit(main())
