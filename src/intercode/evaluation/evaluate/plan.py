"""What a run is made of, and what of it is still to be done."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from intercode import datasets
from intercode.agents import accepts_parameter, open_agent
from intercode.agents.base import Agent
from intercode.core import logs, trajectories
from intercode.core.config import EvalConfig
from intercode.core.errors import ConfigError, UsageError
from intercode.core.registry import unknown_name_error
from intercode.core.types import Dataset, Trajectory
from intercode.datasets.load_cache import environment_for_options
from intercode.environments import ENVIRONMENTS, make
from intercode.environments.base.env import InterCodeEnv
from intercode.evaluation.evaluate.budgets import check_limits
from intercode.evaluation.evaluate.run_directory import (
    create_run_directory,
    require_same_run,
    run_name,
    unused_directory,
)
from intercode.evaluation.evaluate.run_metadata import episode_metadata, run_metadata
from intercode.evaluation.evaluate.run_state import EpisodeKey, RunState, Sample, read_run_state
from intercode.models import Model, open_model

__all__ = [
    "Plan",
    "create_run",
    "make_plan",
    "open_env",
    "run_name",
    "select_tasks",
    "unused_directory",
    "with_metadata",
]  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """A run that can be worked on from many threads: ``env`` and ``agent`` make new ones.

    ``chosen`` are positions in the dataset, in its order; ``facts`` what every result names;
    ``opened``: the model was opened for this plan, which closes it.
    """

    config: EvalConfig
    dataset: Dataset
    task_indices: tuple[int, ...]
    model: Model | None
    agent_inputs: Mapping[str, Any]
    agent_options: Mapping[str, Any]
    metadata: Mapping[str, Any]
    out: Path
    owns_model: bool = False

    @property
    def trajectories_file(self) -> Path:
        """Where the trajectories are."""
        return self.out / trajectories.TRAJECTORIES_FILE

    @property
    def samples(self) -> list[Sample]:
        """Every episode of the run in the order of play: one epoch after another, each in the
        dataset's order, or all of them as the seed shuffles them."""
        epochs = range(self.config.epochs)
        order = [Sample(i, epoch) for epoch, i in itertools.product(epochs, self.task_indices)]
        if self.config.shuffle:
            random.Random(self.config.seed or 0).shuffle(order)
        return order

    @property
    def uses_model(self) -> bool:
        """Whether the agent asks a model, so that what it spends can be limited."""
        return self.model is not None and accepts_parameter(self.config.agent, "model")

    def close(self) -> None:
        """Close the connections of a model that the plan has opened, not of one that it was given.

        For the end of a run, when nobody asks any more: a request under way would be sent again.
        """
        close = getattr(self.model, "close", None)
        if self.owns_model and callable(close):
            close()

    def make_env(self) -> InterCodeEnv:
        """A new environment."""
        return open_env(self.config, self.dataset)

    def make_agent(self, epoch: int = 0, model: Model | None = None) -> Agent:
        """A new agent, for episodes of an epoch; ``model`` in place of the run's own."""
        offers, options = dict(self.agent_inputs), dict(self.agent_options)
        if model is not None:
            offers["model"] = model
        if isinstance(recorded := options.get("actions"), _RecordedActions):
            options["actions"] = recorded.for_epoch(epoch)
        return open_agent(self.config.agent, options, **offers)

    def episode_seed(self, sample: Sample) -> int | None:
        """What an episode's environment is seeded with: the run's seed + the task's position +
        epoch * number of tasks in the dataset, so that no two episodes share one; None without."""
        if self.config.seed is None:
            return None
        return self.config.seed + sample.index + sample.epoch * len(self.dataset)

    def episode_key(self, sample: Sample) -> EpisodeKey:
        """What the episode is known by on disk."""
        return EpisodeKey(self.dataset.tasks[sample.index].id, sample.epoch)

    def read_state(self) -> RunState:
        """What of the run is on disk."""
        return read_run_state(self.trajectories_file, map(self.episode_key, self.samples))

    def finished_episodes(self) -> list[Trajectory]:
        """The run's episodes on disk that ended without an error, each once."""
        keys = {self.episode_key(sample) for sample in self.samples}
        found = (
            trajectories.read_trajectories(self.trajectories_file)
            if self.trajectories_file.exists()
            else ()
        )
        good = (t for t in found if trajectories.has_result(t))
        return list(
            {EpisodeKey(t.task, t.epoch): t for t in good if (t.task, t.epoch) in keys}.values()
        )

    def episode_errors(self) -> list[str]:
        """The last error of each episode that is on disk without a result."""
        return list(self.read_state().errors.values())

    def pending_samples(self, standing: RunState | None = None) -> list[Sample]:
        """The episodes that have no result yet, in the order of play."""
        done = (standing or self.read_state()).finished
        return [sample for sample in self.samples if self.episode_key(sample) not in done]

    def pending_tasks(self) -> list[int]:
        """The positions of the tasks that lack a result, in whichever epoch."""
        return sorted({sample.index for sample in self.pending_samples()})


def make_plan(config: EvalConfig, model: Model | None = None) -> Plan:
    """Everything a run needs, opened and checked before its first episode. Writes nothing.

    ``model`` takes the place of the one that the configuration names. Raises UsageError and its
    kin for whatever cannot be, among them an ``out`` that holds another run.
    """
    dataset = datasets.load(config.dataset, environment_for_options(config.env_options))
    chosen = select_tasks(dataset, config.tasks, config.limit)
    needs_model = accepts_parameter(config.agent, "model")
    opened = model is None and needs_model
    if opened and config.model is not None:
        model = open_model(config.model, config.base_url, **config.model_options)
    options = _read_actions(config)
    golds = {t.id: (t.solution,) for t in dataset.tasks if t.solution is not None}
    offers = {"model": model, "golds": golds, "max_turns": config.max_turns}
    plan = Plan(config, dataset, chosen, model, offers, options, {}, config.out or Path("runs"))
    agent = plan.make_agent()
    if plan.uses_model and model is not None:
        check_limits(config, model)
    with open_env(config, dataset) as env:
        facts = run_metadata(config, env.result_metadata(), agent, model if needs_model else None)
    facts["tasks_in_dataset"] = len(dataset)
    out = config.out or unused_directory(Path("runs"), run_name(facts), facts)
    require_same_run(out, facts)
    return replace(plan, metadata=facts, out=out, owns_model=opened)


def open_env(config: EvalConfig, dataset: Dataset) -> InterCodeEnv:
    """The environment that a dataset is played in, under the conditions of a configuration."""
    env: InterCodeEnv = make(dataset.environment, dataset, **env_settings(config, dataset))
    return env


def env_settings(config: EvalConfig, dataset: Dataset) -> dict[str, Any]:
    """The settings of that environment. Raises UnknownNameError for an option that it lacks."""
    general = {
        "profile": config.profile, "image": config.image, "sandbox": config.sandbox,
        "network": config.network, "timeout": config.timeout, "max_turns": config.max_turns,
        "reward": config.reward, "deterministic": config.determinism,
        "hashes": config.hashes or None, "policy": config.policy,
    }  # fmt: skip
    kind = ENVIRONMENTS.load(dataset.environment)
    own = {n for c in kind.__mro__ for n in getattr(c.__init__, "__kwdefaults__", None) or ()}
    if "record_diffs" in own:  # an environment with files
        general["record_diffs"] = config.record_diffs
    for name in config.env_options:
        if name not in own - set(general):
            raise unknown_name_error("environment option", name, sorted(own - set(general)))
    return {**general, **config.env_options}


def select_tasks(dataset: Dataset, wanted: Sequence[str], limit: int | None) -> tuple[int, ...]:
    """Positions of the tasks asked for by id or position, in the dataset's order.

    Raises UnknownNameError for an id that is not there, UsageError for a position out of range.
    """
    by_id = {task.id: i for i, task in enumerate(dataset.tasks)}
    found = set()
    for name in wanted:
        if name in by_id:
            found.add(by_id[name])
        elif not name.isdigit():
            raise unknown_name_error(f"task of {dataset.name}", name, list(by_id))
        elif int(name) >= len(dataset):
            raise UsageError(f"task {name} is out of range: {dataset.name} has {len(dataset)}")
        else:
            found.add(int(name))
    positions = sorted(found) if wanted else range(len(dataset))
    return tuple(itertools.islice(positions, limit))


class _RecordedActions:
    """Recorded actions of several epochs; one that was not recorded plays the first."""

    def __init__(self, episodes: Sequence[Trajectory]) -> None:
        self._by_epoch: dict[int, dict[str, list[str | None]]] = {}
        for t in episodes:
            actions = [None if not s.action and not s.executed else s.action for s in t.steps]
            self._by_epoch.setdefault(t.epoch, {})[t.task] = actions

    def for_epoch(self, epoch: int) -> Mapping[str, list[str | None]]:
        """The actions of each task."""
        first = self._by_epoch[min(self._by_epoch)]
        return {**first, **self._by_epoch.get(epoch, {})}


def _read_actions(config: EvalConfig) -> Mapping[str, Any]:
    """The agent's options, with ``actions=LOG`` read for an agent that plays recorded actions."""
    log = config.agent_options.get("actions")
    if not isinstance(log, str) or not accepts_parameter(config.agent, "actions"):
        return config.agent_options
    episodes = [t for t in logs.load_log(Path(log)) if t.parent is None] or logs.load_log(Path(log))
    if not episodes:
        raise ConfigError(f"{log} holds no episode whose actions could be played")
    return {**config.agent_options, "actions": _RecordedActions(episodes)}


def create_run(plan: Plan) -> None:
    """Make the run's directory with its run.json and README.txt, unless they are there."""
    create_run_directory(plan.out, plan.metadata)


def with_metadata(plan: Plan, trajectory: Trajectory, **more: Any) -> Trajectory:
    """The trajectory with what it was obtained with."""
    return replace(trajectory, run={**episode_metadata(plan.metadata), **more})
