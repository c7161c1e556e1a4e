"""Which tasks of a dataset a run plays: named ones, ranges of positions, or a random sample."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterable, Mapping, Sequence

from intercode.core.errors import UsageError
from intercode.core.types import Dataset, Task
from intercode.environments.base.options import unknown_task_error
from intercode.environments.recorded_descriptions import describe_environment, stratum_of

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def select_tasks(
    dataset: Dataset,
    wanted: Sequence[str],
    limit: int | None = None,
    sample: int | None = None,
    seed: int | None = None,
) -> tuple[int, ...]:
    """Return the positions of the wanted tasks, in the dataset's order.

    ``wanted`` has ids, positions, and ranges of positions such as ``0-5``, which include both ends;
    if it is empty, all tasks are wanted. Of these, the first ``limit`` are returned, or a random
    ``sample`` (see ``sample_tasks``). Raises UnknownNameError for an unknown id, UsageError for a
    position out of range.
    """
    by_id = {task.id: i for i, task in enumerate(dataset.tasks)}
    chosen = {position for name in wanted for position in _positions(dataset, by_id, name)}
    positions: Sequence[int] = sorted(chosen) if wanted else range(len(dataset))
    if sample is not None:
        positions = sample_tasks(dataset, positions, sample, seed or 0)
    return tuple(itertools.islice(positions, limit))


def sample_tasks(
    dataset: Dataset, positions: Iterable[int], size: int, seed: int
) -> tuple[int, ...]:
    """Return a random sample of tasks, in the dataset's order; all of them if there are fewer.

    It is stratified by hardness (SQL) or by group, whichever the tasks have: each stratum gives
    about its share of the sample, mostly within one task. Every task is as likely as any other. A
    larger sample with the same seed contains a smaller one, so that a run can be extended.
    """
    strata: dict[str, list[int]] = {}
    for position in positions:
        strata.setdefault(_stratum(dataset, dataset.tasks[position]), []).append(position)
    draw = random.Random(seed)
    order: list[tuple[float, int]] = []
    places, start = draw.sample(range(len(strata)), len(strata)), draw.random()
    for place, (_, members) in zip(places, sorted(strata.items()), strict=True):
        draw.shuffle(members)
        offset = (place + start) / len(strata)  # evenly spread: small strata do not come at once
        order += [((rank + offset) / len(members), p) for rank, p in enumerate(members)]
    return tuple(sorted(position for _, position in sorted(order)[:size]))


def _stratum(dataset: Dataset, task: Task) -> str:
    return stratum_of(task, describe_environment(dataset.environment)) or ""


def _positions(dataset: Dataset, by_id: Mapping[str, int], name: str) -> range:
    """Return the positions that an id, a position or a range stands for."""
    if name in by_id:
        return range(by_id[name], by_id[name] + 1)
    found = _RANGE.fullmatch(name)
    if not found:
        raise unknown_task_error(dataset, name)
    first, last = int(found[1]), int(found[2] or found[1])
    if last >= len(dataset):
        raise UsageError(
            f"task {name} is out of range: {dataset.name} has {len(dataset)} tasks, whose "
            f"positions are 0 to {len(dataset) - 1}"
        )
    if first > last:
        raise UsageError(f"the range {name} of tasks is empty: write {last}-{first}")
    return range(first, last + 1)
