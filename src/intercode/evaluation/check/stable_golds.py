"""Keeps the golds that a check has seen to be steady, so that later episodes need not run them."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from intercode.core.errors import InterCodeError
from intercode.core.paths import cache_root
from intercode.core.types import Dataset, Image, LayerSpec, State, Task
from intercode.environments.base.layers import task_layer
from intercode.evaluation.check.task_runs import TaskRun, TaskRunner, task_runners
from intercode.sandbox.images.build import layer_dates
from intercode.sandbox.images.build.on_demand import resolve_or_build

_AGE_SECONDS = (40 * 24 + 7) * 3600
"""Seconds by which the files of a task are older when its golds are run for their dates' sake."""


@dataclass(frozen=True, slots=True)
class StableGolds:
    """What two runs of a task's golds have both left, in the same hour since the epoch."""

    hour: int
    golds: tuple[State, ...]


def compare_runs(first: TaskRun, second: TaskRun, golds: int) -> StableGolds | None:
    """What two scored runs have shown, where they are alike and of one hour."""
    hours = {int(play.started // 3600) for play in (first, second)}
    alike = len(first.golds) == golds > 0 and first.golds == second.golds
    return StableGolds(hours.pop(), first.golds) if alike and len(hours) == 1 else None


def cache_stable(
    dataset: Dataset, settings: Mapping[str, Any], parallel: int, shown: Mapping[int, StableGolds]
) -> int:
    """Have kept what the golds of these tasks leave, and return of how many tasks they were kept.

    ``shown`` holds what was seen, by position in the dataset. Where task files are dated anew every
    hour, the golds run once more on files that are forty days older: only what is still the same
    is kept for later hours too.
    """

    def kept(player: TaskRunner, i: int, dated: bool) -> bool:
        return player.cache_golds(i, shown[i].golds, dated, shown[i].hour)

    with task_runners(dataset, settings, parallel) as over:
        answers = over(partial(kept, dated=True), shown)  # what may not be kept is not run again
        found = {i: shown[i] for i, is_kept in zip(shown, answers, strict=True) if is_kept}
        over(
            partial(kept, dated=False), _stable_with_older_files(dataset, settings, parallel, found)
        )
    return len(found)


def _stable_with_older_files(
    dataset: Dataset, settings: Mapping[str, Any], parallel: int, shown: Mapping[int, StableGolds]
) -> list[int]:
    """The positions of those tasks whose golds leave the same on older files."""
    if not shown:
        return []
    image = resolve_or_build(str(settings.get("image") or dataset.image))
    with (
        _with_older_files(dataset, image, shown) as aged,
        task_runners(aged, settings, parallel) as over,
    ):
        same = over(lambda player, i: _leaves_same(player, i, shown[i].golds), shown)
    return [i for i, is_same in zip(shown, same, strict=True) if is_same]


def _leaves_same(player: TaskRunner, i: int, golds: tuple[State, ...]) -> bool:
    try:
        return player.run(i, player.env.dataset.tasks[i].golds[0]).golds == golds
    except InterCodeError:  # nothing is proven then
        return False


@contextmanager
def _with_older_files(dataset: Dataset, image: Image, which: Iterable[int]) -> Iterator[Dataset]:
    """The dataset with older files below those of its tasks that are dated anew every hour."""
    made: dict[LayerSpec, LayerSpec] = {}
    home = Path(tempfile.mkdtemp(prefix="aged-", dir=cache_root()))
    home.chmod(0o755)
    try:
        tasks = list(dataset.tasks)
        for i in which:
            tasks[i] = _task_with_older_files(tasks[i], image, home, made)
        yield replace(dataset, tasks=tuple(tasks))
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _task_with_older_files(
    task: Task, image: Image, home: Path, made: dict[LayerSpec, LayerSpec]
) -> Task:
    for spec in task.files:
        if spec.shift_dates and spec not in made:
            layer = task_layer(replace(spec, shift_dates=False), image)
            old = layer_dates.redated_layer(layer, home, now=time.time() - _AGE_SECONDS)
            made[spec] = LayerSpec("dir", old.root)
    return replace(task, files=tuple(made.get(spec, spec) for spec in task.files))
