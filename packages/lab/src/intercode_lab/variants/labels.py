"""Measures variants against labels: do they find what is right by luck, and blame nothing else?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from intercode.core.errors import InfrastructureError, SandboxUnavailableError
from intercode.core.types import Dataset
from intercode.datasets.load_cache import load_cached
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.pool.lending import EnvironmentPool
from intercode.evaluation.check.task_runs import TaskRunner
from intercode.results.statistics.intervals import (
    clusters_by_task,
    estimate_proportion,
    value_and_bounds,
)
from intercode.results.tables import Cell, Table
from intercode_lab.labels.records import CORRECT
from intercode_lab.validity.grading import GradedLabel, play_label
from intercode_lab.validity.tables import FILE_BOUND
from intercode_lab.variants.tables import show_action
from intercode_lab.variants.tasks import (
    TaskVariants,
    VariantTasks,
    find_variants,
    require_count,
    variant_settings,
)


@dataclass(frozen=True, slots=True)
class HeldLabel:
    """A graded label and the variants in which its actions solve the task.

    ``lucky``: the label says that the actions are right in the given state only, or that they are
    incorrect though they are graded 1.
    """

    graded: GradedLabel
    variants: TaskVariants
    held: tuple[int, ...]

    @property
    def lucky(self) -> bool:
        label = self.graded.label
        return label.value != CORRECT or bool(label.extra.get(FILE_BOUND))

    @property
    def holds(self) -> bool:
        """Whether the actions solve every variant."""
        return self.held == self.variants.seeds


def measure_labels(
    graded: Sequence[GradedLabel],
    settings: Mapping[str, Any],
    count: int,
    parallel: int,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> list[HeldLabel]:
    """Play the labels that are graded 1 in ``count`` variants of their tasks, but ambiguous ones.

    Labels whose task has no variants are in the result, with no seeds.
    """
    require_count(count)
    groups: dict[tuple[str, str], list[GradedLabel]] = defaultdict(list)
    for g in graded:
        if g.counted and g.paid:
            groups[g.dataset, g.label.task].append(g)
    sources = {name: VariantTasks(load_cached(name, "bash")) for name, _ in groups}

    def measure(key: tuple[str, str]) -> list[HeldLabel]:
        source = sources[key[0]]
        make = partial(TaskRunner, source.dataset, variant_settings(settings))
        with runners.borrow(make, key[0]) as runner:
            index = _position(source.dataset, key[1])
            found = find_variants(source, runner, index, count)
            return [HeldLabel(g, found, _held(runner.env, g, found)) for g in groups[key]]

    results: list[HeldLabel] = []
    with EnvironmentPool[TaskRunner]() as runners, ThreadPoolExecutor(parallel) as threads:
        for number, held in enumerate(threads.map(measure, groups), 1):
            results += held
            progress(number, len(groups))
    return results


def _position(dataset: Dataset, task: str) -> int:
    return next(n for n, t in enumerate(dataset.tasks) if t.id == task)


def _held(env: InterCodeEnv, graded: GradedLabel, found: TaskVariants) -> tuple[int, ...]:
    try:
        return tuple(seed for seed in found.seeds if play_label(env, graded.label, seed)[0].success)
    except SandboxUnavailableError:
        raise
    except InfrastructureError:
        return ()


def label_tables(held: Sequence[HeldLabel]) -> list[Table]:
    """Return the share of lucky labels that variants find and the share of the others that they
    blame, for verified tasks and for all, and the labels that fail in a variant."""
    played = [h for h in held if h.variants.seeds]
    verified = [h for h in played if h.graded.verified]
    groups = [("all", played)]
    if 0 < len(verified) < len(played):
        groups.insert(0, ("verified", verified))
    rows = tuple(
        (name, text, *_share([h for h in group if h.lucky == lucky]))
        for name, group in groups
        for lucky, text in ((True, "right by luck: found"), (False, "right: false alarms"))
    )
    columns = ("tasks", "labels that are", "fail in a variant", "of", "percent", "low", "high")
    notes = (f"{len(held) - len(played)} labels have no variants",)
    intervals = (("percent", "low", "high"),)
    tables = [Table("holding", "Labels in variants", columns, rows, notes, (), intervals)]
    errors = tuple(
        (
            h.graded.label.task,
            "yes" if h.graded.verified else "no",
            "yes" if h.lucky else "no",
            f"{len(h.held)} of {len(h.variants.seeds)}",
            show_action(h.graded.label.actions[-1]),
        )
        for h in played
        if h.holds == h.lucky
    )
    if errors:
        heads = ("task", "verified", "by luck", "holds in", "last action")
        tables.append(
            Table("errors", "Lucky labels that hold, and others that do not", heads, errors)
        )
    return tables


def _share(held: Sequence[HeldLabel]) -> tuple[Cell, ...]:
    pairs = [(h.graded.label.task, not h.holds) for h in held]
    estimate = estimate_proportion(clusters_by_task(pairs))
    bounds = value_and_bounds(estimate.scaled(100.0) if estimate else None)
    return sum(hit for _, hit in pairs), len(pairs), *bounds
