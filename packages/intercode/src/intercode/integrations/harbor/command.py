"""``intercode harbor``: writes the tasks of a dataset as task directories for Harbor."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import Any

from intercode.core.types import Dataset, Score, State, Task

EXAMPLE = """\
examples:
  intercode harbor ic-ctf:offline --out tasks
  intercode harbor ./my-task --out tasks --base debian:bookworm
  intercode check harbor:tasks            are they sound?
  intercode eval harbor:tasks --agent gold

Tasks of others in this format can be played as they are: intercode eval harbor:/path."""

ARGUMENTS = """\
dataset DATASET     a dataset of Python, of CTF, or with probes
--environment NAME  environment of the dataset, if it has tasks for several (starter)
--out DIR           where to write
--base IMAGE        image in FROM (default: the dataset's)
--limit N           the first N tasks only"""
DEFAULTS = {"environment": "bash"}
SETTINGS = {"out": {"required": True}}


def handle(args: argparse.Namespace) -> int:
    """Write the tasks and print which ones the format cannot express."""
    from intercode import datasets
    from intercode.integrations.harbor.export.tasks import write_tasks

    dataset = datasets.load(args.dataset, args.environment)
    if args.limit is not None:
        dataset = replace(dataset, tasks=dataset.tasks[: args.limit])
    with _GoldProbes(dataset) as probes:
        written = write_tasks(dataset, args.out, args.base, probes.probe_output)
    print(f"wrote {written.records} tasks to {args.out}", file=sys.stderr)
    for note in written.omitted:
        print(f"  left out: {note}", file=sys.stderr)
    print(f"check them: intercode check harbor:{args.out}", file=sys.stderr)
    return 0


class _GoldProbes:
    """Runs the golds of a dataset's tasks, and their probes on the states that the golds leave."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset, self._env, self._gold = dataset, None, State()

    def __enter__(self) -> _GoldProbes:
        return self

    def __exit__(self, *_: object) -> None:
        if self._env is not None:
            self._env.close()

    def probe_output(self, task: Task) -> str:
        """Return the output of a task's probe after its gold has run."""
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
