"""Stores the results of stable golds in the gold cache, so that later episodes need not run them.

A gold is stable if a check has run it twice with the same result.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from intercode.core.errors import InterCodeError
from intercode.core.types import Dataset, Image, LayerSpec, State, Task
from intercode.environments.base.layers import task_layer
from intercode.evaluation.check.task_runs import TaskRun, TaskRunner, task_runners
from intercode_sandbox.images.build import layer_dates
from intercode_sandbox.images.build.on_demand import resolve_or_build
from intercode_sandbox.platforms.paths import cache_root

_AGE_SECONDS = (40 * 24 + 7) * 3600
"""Seconds by which task files are made older, to test whether a gold depends on their dates."""


@dataclass(frozen=True, slots=True)
class StableGolds:
    """The results of a task's golds, up to the first that differed between two runs, and the hour
    since the epoch of both runs."""

    hour: int
    golds: tuple[State, ...]


def compare_runs(first: TaskRun, second: TaskRun, golds: int) -> StableGolds | None:
    """Return the equal results of two scored runs of all golds, if they are from the same hour."""
    hours = {int(run.started // 3600) for run in (first, second)}
    equal = _equal_start(first.golds, second.golds)
    is_complete = len(first.golds) == len(second.golds) == golds
    return StableGolds(hours.pop(), equal) if equal and is_complete and len(hours) == 1 else None


def _equal_start(one: tuple[State, ...], other: tuple[State, ...]) -> tuple[State, ...]:
    """Return the states before the first that differs from the other one in its place."""
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return tuple(state for state, _ in pairs)


def cache_stable(
    dataset: Dataset, settings: Mapping[str, Any], parallel: int, stable: Mapping[int, StableGolds]
) -> int:
    """Store stable golds, by position in the dataset, and return for how many tasks.

    Some task files get new dates every hour. Their golds run once more on files that are forty days
    older. Only results that are the same then are stored for later hours too.
    """

    def cache(runner: TaskRunner, i: int, dated: bool) -> bool:
        return runner.cache_golds(i, stable[i].golds, dated, stable[i].hour)

    with task_runners(dataset, settings, parallel) as run_all:
        results = run_all(partial(cache, dated=True), stable)
        cached = {i: stable[i] for i, ok in zip(stable, results, strict=True) if ok}
        stable = _stable_with_older_files(dataset, settings, parallel, cached)
        run_all(partial(cache, dated=False), stable)
    return len(cached)


def _stable_with_older_files(
    dataset: Dataset, settings: Mapping[str, Any], parallel: int, stable: Mapping[int, StableGolds]
) -> dict[int, StableGolds]:
    """Return the results that golds also have on older files, by position in the dataset."""
    if not stable:
        return {}
    image = resolve_or_build(str(settings.get("image") or dataset.image))
    with (
        _with_older_files(dataset, image, stable) as aged,
        task_runners(aged, settings, parallel) as run_all,
    ):
        results = run_all(_run_golds, stable)
    runs = zip(stable.items(), results, strict=True)
    equal = {i: replace(s, golds=_equal_start(s.golds, golds)) for (i, s), golds in runs}
    return {i: s for i, s in equal.items() if s.golds}


def _run_golds(runner: TaskRunner, i: int) -> tuple[State, ...]:
    """Return the results of the golds of a task; empty if they fail."""
    try:
        return runner.run(i, runner.env.dataset.tasks[i].golds[0]).golds
    except InterCodeError:  # so it is not known to be stable
        return ()


@contextmanager
def _with_older_files(dataset: Dataset, image: Image, which: Iterable[int]) -> Iterator[Dataset]:
    """Yield the dataset with older copies of the files that get new dates every hour."""
    copies: dict[LayerSpec, LayerSpec] = {}
    home = Path(tempfile.mkdtemp(prefix="aged-", dir=cache_root()))
    home.chmod(0o755)
    try:
        tasks = list(dataset.tasks)
        for i in which:
            tasks[i] = _task_with_older_files(tasks[i], image, home, copies)
        yield replace(dataset, tasks=tuple(tasks))
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _task_with_older_files(
    task: Task, image: Image, home: Path, copies: dict[LayerSpec, LayerSpec]
) -> Task:
    for spec in task.files:
        if spec.shift_dates and spec not in copies:
            layer = task_layer(replace(spec, shift_dates=False), image)
            old = layer_dates.redated_layer(layer, home, now=time.time() - _AGE_SECONDS)
            copies[spec] = LayerSpec("dir", old.root)
    return replace(task, files=tuple(copies.get(spec, spec) for spec in task.files))
