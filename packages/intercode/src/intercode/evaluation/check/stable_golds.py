"""Stores the results of stable golds in the gold cache, so that later episodes need not run them.

A gold is stable if it reaches the same state with the clock and the random numbers of this machine,
where a check has run it twice, and under other clocks and seeds, each in a sandbox of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Any

from intercode.core.errors import InterCodeError
from intercode.core.types import Dataset, State
from intercode.environments.base.gold_cache import CachesGolds
from intercode.evaluation.check.task_runs import TaskRun, TaskRunner, task_runners
from intercode_sandbox.determinism import Determinism, resolve_determinism

_CLOCKS = ("2019-02-28 00:00:01", "2022-08-14 15:59:58", "2099-12-05 21:30:29")
"""Times that differ in each of their parts. In the first two, the files of tasks are as old as at
the first and at the last second of an hour (see sandbox/images/build/layer_dates.py); in the last,
those of the image are old (see sandbox/supervisor/clock.py)."""

Golds = tuple[State, ...]


def compare_runs(first: TaskRun, second: TaskRun, golds: int) -> Golds | None:
    """Return the results of two scored runs of all golds, up to the first that differs; None if it
    is the first of all."""
    equal = _equal_start(first.golds, second.golds)
    return equal if equal and len(first.golds) == len(second.golds) == golds else None


def _equal_start(one: Golds, other: Golds) -> Golds:
    """Return the states before the first that differs from the other one in its place."""
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return tuple(state for state, _ in pairs)


def cache_stable(
    dataset: Dataset, settings: Mapping[str, Any], parallel: int, equal: Mapping[int, Golds]
) -> int:
    """Store the results that golds also have under other clocks and seeds, and return for how many
    tasks. ``equal``: those that were equal twice, by position in the dataset."""
    own = resolve_determinism(settings.get("deterministic", False)) or Determinism(locale="POSIX")
    with task_runners(dataset, settings, parallel) as run_all:
        if not run_all(lambda runner, _: runner.caches_golds, [0])[0]:
            return 0
        for seed, clock in enumerate(_CLOCKS, own.seed + 1):
            varied = {**settings, "deterministic": replace(own, clock=clock, seed=seed)}
            with task_runners(dataset, varied, parallel) as run_all_varied:
                results = run_all_varied(partial(_golds_at, clock), equal)
            pairs = zip(equal.items(), results, strict=True)
            equal = {i: same for (i, golds), other in pairs if (same := _equal_start(golds, other))}
        return sum(run_all(lambda runner, i: runner.cache_golds(i, equal[i]), equal))


def _golds_at(clock: str, runner: TaskRunner, i: int) -> Golds:
    """Return the results of the golds of a task; empty if none may be cached, if they fail, or if
    the programs of the sandbox do not read its clock."""
    try:
        runner.reset(i)
        if not isinstance(runner.env, CachesGolds) or not runner.env.may_cache_golds():
            return ()
        shown = runner.env.execute("date -u '+%Y-%m-%d %H:%M:%S'").observation.strip()
        return runner.score_here()[2] if shown == clock else ()
    except InterCodeError:  # so it is not known to be stable
        return ()
