"""``intercode export --to harbor``: writes a dataset's tasks as task directories for Harbor."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from intercode.core.types import Dataset, Score, State, Task


def write(name: str, out: Path, base: str | None = None, limit: int | None = None) -> int:
    """Write the tasks of a dataset of Python, of CTF, or with probes, and print which ones the
    format cannot express. Returns the exit status."""
    from intercode import datasets
    from intercode.integrations.harbor.export.tasks import write_tasks

    dataset = datasets.load(name)
    if limit is not None:
        dataset = replace(dataset, tasks=dataset.tasks[:limit])
    with _GoldProbes(dataset) as probes:
        written = write_tasks(dataset, out, base, probes.probe_output)
    print(f"wrote {written.records} tasks to {out}", file=sys.stderr)
    for note in written.omitted:
        print(f"  left out: {note}", file=sys.stderr)
    print(f"check them: intercode check harbor:{out}", file=sys.stderr)
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
