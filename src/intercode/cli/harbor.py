"""``intercode harbor``: a dataset's tasks as directories that other harnesses play."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import Any

from intercode.cli.parser import path, positive_int
from intercode.core.types import Dataset, Score, State, Task

EXAMPLE = """\
examples:
  intercode harbor ic-ctf:offline --out tasks
  intercode harbor ./my-task --out tasks --base debian:bookworm
  intercode check harbor:tasks            are they sound?
  intercode eval harbor:tasks --agent gold

Tasks that others wrote in this format are played as they are: intercode eval harbor:/path."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.epilog = EXAMPLE
    parser.add_argument(
        "dataset", metavar="DATASET", help="as `intercode eval` takes it: Python's, CTF's, or with "
        "a look"
    )  # fmt: skip
    parser.add_argument(
        "--environment", metavar="NAME", default="bash", help="whose starter tasks are meant"
    )
    parser.add_argument("--out", type=path, required=True, metavar="DIR", help="where to write")
    parser.add_argument(
        "--base", metavar="IMAGE", help="what stands in FROM (default: what the dataset's image is)"
    )
    parser.add_argument("--limit", type=positive_int, metavar="N", help="the first N tasks only")


def handle(args: argparse.Namespace) -> int:
    """Write the tasks, and say which could not be told in this format."""
    from intercode import datasets
    from intercode.results.export.harbor.tasks import write_tasks

    dataset = datasets.load(args.dataset, args.environment)
    if args.limit is not None:
        dataset = replace(dataset, tasks=dataset.tasks[: args.limit])
    with _GoldProbes(dataset) as looks:
        written = write_tasks(dataset, args.out, args.base, looks.probe_output)
    print(f"wrote {written.records} tasks to {args.out}", file=sys.stderr)
    for note in written.omitted:
        print(f"  left out: {note}", file=sys.stderr)
    print(f"prove them: intercode check harbor:{args.out}", file=sys.stderr)
    return 0


class _GoldProbes:
    """What the looks of a dataset's tasks print of what the golds leave."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset, self._env, self._gold = dataset, None, State()

    def __enter__(self) -> _GoldProbes:
        return self

    def __exit__(self, *_: object) -> None:
        if self._env is not None:
            self._env.close()

    def probe_output(self, task: Task) -> str:
        """Run the gold in a fresh box and its look there."""
        from intercode.environments import make

        env: Any = self._env
        if env is None:
            self._env = env = make(
                self._dataset.environment, self._dataset, reward=self._record_gold
            )
        env.reset(options={"task": task.id})
        env.score()
        return self._gold.probe_output

    def _record_gold(self, task: Task, agent: State, gold: State) -> Score:
        del task, agent
        self._gold = gold
        return Score(0.0)
