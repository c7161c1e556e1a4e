"""Plays solved episodes again in variants of their tasks: does the solution hold elsewhere?"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count as count_from
from pathlib import Path
from typing import Any

from intercode.core import logs
from intercode.core.errors import (
    GoldError,
    InfrastructureError,
    SandboxUnavailableError,
    UsageError,
)
from intercode.core.logs.formats import is_native
from intercode.core.types import SUBMIT, Trajectory
from intercode.datasets.load_cache import load_cached
from intercode.environments.base.env import InterCodeEnv
from intercode.evaluation.check.task_runs import TaskRunner, task_runners
from intercode.evaluation.replay.recorded_environments import (
    ReplayOptions,
    environment_settings,
)
from intercode.evaluation.replay.regrade import play_again
from intercode.results.statistics.intervals import (
    Estimate,
    clusters_by_task,
    estimate_proportion,
    value_and_bounds,
)
from intercode.results.statistics.metrics import drop_retried_failures, is_solved, solves
from intercode_lab.variants.tasks import (
    ORIGINAL,
    TaskVariants,
    VariantTasks,
    find_variants,
    require_count,
    variant_settings,
)

VARIANTS_FILE = "variants.json"
"""The file of a run that says in which variants its solutions hold."""


@dataclass(frozen=True, slots=True)
class HeldEpisode:
    """A solved episode in the variants of its task.

    ``held``: the seeds of the variants in which its actions solve the task, of ``seeds``.
    ``fault``: why it could not be played there, else empty.
    """

    task: str
    epoch: int
    actions: tuple[str, ...]
    seeds: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    fault: str = ""

    @property
    def played(self) -> bool:
        """Whether it was played in a variant."""
        return bool(self.seeds) and not self.fault

    @property
    def holds(self) -> bool:
        """Whether its actions solve every variant."""
        return self.played and self.held == self.seeds


@dataclass(frozen=True, slots=True)
class HoldingReport:
    """Which solutions of a run hold elsewhere.

    ``solved`` counts the episodes that are recorded as solved; ``count`` is the number of variants
    of each task that was asked for. ``unsolved`` counts those that the profile ``standard`` does
    not call solved in the original state; they are in no figure.
    """

    run: str
    dataset: str
    dataset_hash: str
    count: int
    solved: int
    unsolved: int
    episodes: tuple[HeldEpisode, ...]
    tasks: tuple[TaskVariants, ...]

    @property
    def share(self) -> Estimate | None:
        """The share of the solved episodes whose actions solve every variant of their task, with
        its interval. Episodes whose task has no variants are left out."""
        pairs = [(e.task, e.holds) for e in self.episodes if e.played]
        return estimate_proportion(clusters_by_task(pairs))

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON types, with the share and its bounds."""
        value, low, high = value_and_bounds(self.share)
        figure = {"share": value, "low": low, "high": high}
        return {"holds_elsewhere": figure, **asdict(self)}


def measure_holding(
    source: Path,
    options: ReplayOptions,
    count: int,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> HoldingReport:
    """Play the solved episodes of a log in ``count`` variants of their tasks.

    An episode is played up to the turn that solved it, first in the original state and then in each
    variant, and graded by the reward of the profile ``standard``. Raises UsageError for a log
    without a solved episode, and for an environment without variants.
    """
    require_count(count)
    recorded = drop_retried_failures(logs.load_log(source))
    solved = [_until_solved(t) for t in recorded if is_solved(t)]
    if not solved:
        raise UsageError(f"{source} has no solved episode")
    environment, name, settings = environment_settings(solved[0], options)
    dataset = load_cached(name, environment)
    by_task: dict[int, list[Trajectory]] = {}
    positions = {task.id: n for n, task in enumerate(dataset.tasks)}
    for episode in solved:
        index = positions.get(episode.task, -1) if is_native(episode) else episode.index
        if not 0 <= index < len(dataset):
            raise UsageError(f"{dataset.name} has no task {episode.task!r}, which was played")
        by_task.setdefault(index, []).append(episode)
    variants = VariantTasks(dataset)
    jobs, finished, lock = list(by_task.items()), count_from(1), threading.Lock()

    def play(runner: TaskRunner, job: int) -> tuple[TaskVariants, list[HeldEpisode]]:
        index, episodes = jobs[job]
        report = _play_task(variants, runner, index, episodes, count)
        with lock:
            progress(next(finished), len(jobs))
        return report

    parallel = min(options.parallel, len(jobs))
    with task_runners(variants.dataset, variant_settings(settings), parallel) as run_all:
        reports: list[tuple[TaskVariants, list[HeldEpisode]]] = run_all(play, range(len(jobs)))
    episodes = [e for _, held in reports for e in held]
    return HoldingReport(
        source.resolve().name,
        dataset.name,
        dataset.hash,
        count,
        len(solved),
        len(solved) - len(episodes),
        tuple(episodes),
        tuple(t for t, _ in reports),
    )


def write_report(report: HoldingReport, directory: Path) -> Path:
    """Write a report to a directory, which may be that of a run. Returns the file."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / VARIANTS_FILE
    text = json.dumps(report.as_json(), indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def _until_solved(episode: Trajectory) -> Trajectory:
    """Return an episode without the turns after the one that solved it."""
    last = next(n for n, step in enumerate(episode.steps, 1) if solves(step))
    return episode.replace(steps=episode.steps[:last])


def _play_task(
    variants: VariantTasks,
    runner: TaskRunner,
    index: int,
    episodes: Sequence[Trajectory],
    count: int,
) -> tuple[TaskVariants, list[HeldEpisode]]:
    """Find the variants of one task and play its episodes there. Episodes that are not solved in
    the original state are left out."""
    try:
        found = find_variants(variants, runner, index, count)
        played = (_play_in_variants(runner.env, found, episode) for episode in episodes)
        return found, [e for e in played if e is not None]
    finally:
        runner.env.end_episode()


def _play_in_variants(
    env: InterCodeEnv, found: TaskVariants, episode: Trajectory
) -> HeldEpisode | None:
    executed = (step.action for step in episode.steps if step.executed)
    actions = tuple(action for action in executed if action.split(None, 1)[:1] != [SUBMIT])
    result = HeldEpisode(episode.task, episode.epoch, actions, found.seeds, fault=found.reason)
    try:
        if not _solves(env, episode, ORIGINAL):
            return None
        held = tuple(seed for seed in found.seeds if _solves(env, episode, seed))
    except SandboxUnavailableError:
        raise
    except (GoldError, InfrastructureError) as e:
        return replace(result, fault=f"{type(e).__name__}: {e}")
    return replace(result, held=held)


def _solves(env: InterCodeEnv, episode: Trajectory, seed: int) -> bool:
    played = play_again(env, episode.replace(seed=seed))
    return any(map(solves, played.values()))


def task_rows(episodes: Iterable[HeldEpisode]) -> list[tuple[str, int, int]]:
    """Return each task with its number of solved episodes and of those that hold."""
    counts: dict[str, tuple[int, int]] = {}
    for episode in episodes:
        if episode.played:
            solved, holding = counts.get(episode.task, (0, 0))
            counts[episode.task] = solved + 1, holding + episode.holds
    return [(task, *pair) for task, pair in counts.items()]
