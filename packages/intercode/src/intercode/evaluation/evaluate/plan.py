"""The plan of a run: its settings, opened and checked, and the episodes that remain to play."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from intercode import datasets
from intercode.agents import (
    AgentFactory,
    accepts_parameter,
    agent_factory,
    open_agent,
    program_of,
)
from intercode.agents.base import Agent
from intercode.agents.baselines import Restart
from intercode.core import logs, trajectories
from intercode.core.config import SETTING_NAMES, EvalConfig
from intercode.core.errors import ConfigError, UnknownNameError, UsageError
from intercode.core.types import ActionError, Dataset, Trajectory, to_jsonable
from intercode.datasets import salt
from intercode.datasets.endless import require_fixed
from intercode.datasets.load_cache import environment_for_options
from intercode.environments import ENVIRONMENTS, check_setting_names, make, setting_names
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.settings import SandboxSettings
from intercode.environments.runners import LOCAL
from intercode.evaluation.evaluate.budgets import check_limits
from intercode.evaluation.evaluate.run_directory import (
    require_same_run,
    run_name,
    unused_directory,
)
from intercode.evaluation.evaluate.run_metadata import RUN_IDENTITY, episode_metadata, run_metadata
from intercode.evaluation.evaluate.run_state import EpisodeKey, RunState, Sample, read_run_state
from intercode.evaluation.evaluate.task_selection import select_tasks
from intercode.evaluation.programs.episode import require_one_instruction
from intercode.evaluation.programs.installation import Installation
from intercode.evaluation.saving import EpisodeSaver, remove_saved
from intercode.models import Model, check_option_names, open_model

SAVED_DIRECTORY = "saved"
"""The directory of a run with its episodes in progress."""


@dataclass(frozen=True)
class Plan:
    """A run. Many threads may use it; each makes environments and agents of its own.

    ``task_indices`` are the positions of the tasks to play, in the dataset's order. ``metadata`` is
    what is recorded in run.json. With ``owns_model`` the plan has opened the model and closes it.
    ``given_agent`` makes the agents if the caller gave them as no name.
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
    given_agent: AgentFactory | None = None

    @property
    def agent(self) -> str | AgentFactory:
        """The name of the agent, or what makes it."""
        return self.given_agent or self.config.agent

    @property
    def trajectories_file(self) -> Path:
        """The file with the trajectories."""
        return self.out / trajectories.TRAJECTORIES_FILE

    @property
    def samples(self) -> list[Sample]:
        """All episodes of the run in the order of play.

        The order is epoch by epoch and task by task, or shuffled with the seed of the run.
        """
        epochs = range(self.config.epochs)
        order = [Sample(i, epoch) for epoch, i in itertools.product(epochs, self.task_indices)]
        if self.config.shuffle:
            random.Random(self.config.seed or 0).shuffle(order)
        return order

    @property
    def uses_model(self) -> bool:
        """Whether the agent uses a model."""
        return self.model is not None and accepts_parameter(self.agent, "model")

    def close(self) -> None:
        """Close the connections of the model, if the plan has opened it.

        Call it at the end of the run: a request in progress would be sent again.
        """
        if self.owns_model and self.model is not None:
            self.model.close()

    def make_env(self) -> InterCodeEnv:
        """Make an environment."""
        return open_env(self.config, self.dataset)

    def make_agent(self, epoch: int = 0, model: Model | None = None) -> Agent:
        """Make an agent for episodes of an epoch, with ``model`` in place of the run's if given."""
        inputs, options = dict(self.agent_inputs), dict(self.agent_options)
        if model is not None:
            inputs["model"] = model
        if isinstance(recorded := options.get("actions"), _RecordedActions):
            options["actions"] = recorded.for_epoch(epoch)
        return open_agent(self.agent, options, **inputs)

    def episode_seed(self, sample: Sample) -> int | None:
        """Return the seed of an episode's environment, or None if the run has no seed.

        It is the seed of the run + the position of the task + the epoch * the number of tasks in
        the dataset, so that no two episodes have the same seed.
        """
        if self.config.seed is None:
            return None
        return self.config.seed + sample.index + sample.epoch * len(self.dataset)

    def episode_key(self, sample: Sample) -> EpisodeKey:
        """Return what identifies the episode on disk."""
        return EpisodeKey(self.dataset.tasks[sample.index].id, sample.epoch)

    def open_saver(self, sample: Sample) -> EpisodeSaver | None:
        """Return what saves an episode and has what was saved of it; None if it is not saved."""
        if not self._has_saved:
            return None
        key, seed = self.episode_key(sample), self.episode_seed(sample)
        path = self._saved_file(key)
        settings = {name: self.metadata[name] for name in RUN_IDENTITY if name in self.metadata}
        own = {"task": key.task, "epoch": key.epoch, "episode_seed": seed}
        every = self.config.save_every
        return EpisodeSaver(path, every, json.loads(json.dumps(to_jsonable(settings | own))))

    def remove_saved(self, sample: Sample) -> None:
        """Remove what was saved of an episode."""
        if self._has_saved:
            remove_saved(self._saved_file(self.episode_key(sample)))

    def clean_saved(self, finished: Iterable[EpisodeKey] = ()) -> None:
        """Remove what was saved of finished episodes, and the directory if it is then empty."""
        directory = self.out / SAVED_DIRECTORY
        if directory.is_dir():
            for key in finished:
                remove_saved(self._saved_file(key))
            with suppress(OSError):  # it is not empty
                directory.rmdir()

    @cached_property
    def _has_saved(self) -> bool:
        """Whether the run saves episodes, or goes on with one that did."""
        return self.config.save_every is not None or (self.out / SAVED_DIRECTORY).exists()

    def _saved_file(self, key: EpisodeKey) -> Path:
        task, epoch = key
        name = hashlib.sha256(task.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self.out / SAVED_DIRECTORY / f"{name}-{epoch}.zip"

    def read_state(self) -> RunState:
        """Read the state of the run on disk."""
        return read_run_state(self.trajectories_file, map(self.episode_key, self.samples))

    def episode_errors(self) -> list[str]:
        """Return the last error of each episode on disk that has no result."""
        return list(self.read_state().errors.values())

    def action_errors(self) -> list[ActionError]:
        """Return the exceptions with which episodes on disk ended because of an action."""
        return self.read_state().action_errors

    def pending_samples(self, state: RunState | None = None) -> list[Sample]:
        """Return the episodes without a result, in the order of play."""
        finished = (state or self.read_state()).finished
        return [sample for sample in self.samples if self.episode_key(sample) not in finished]

    def pending_tasks(self) -> list[int]:
        """Return the positions of the tasks that lack a result in some epoch."""
        return sorted({sample.index for sample in self.pending_samples()})


def make_plan(
    config: EvalConfig,
    model: Model | None = None,
    *,
    needs_key: bool = True,
    given_agent: object = None,
) -> Plan:
    """Open and check everything that a run needs. Writes nothing.

    Args:
        config: The settings of the run.
        model: The model, in place of the one that the configuration names.
        needs_key: Whether a missing key of the model's provider is an error. If nothing will be
            requested, it need not be.
        given_agent: The agent, its class or a function that makes it, in place of the one that the
            configuration names.

    Returns:
        The plan. Close it at the end, which closes a model that it has opened.

    Raises:
        UsageError: Settings are wrong, such as an ``out`` that contains another run. The subclass
            says how: UnknownNameError, ConfigError or DataError.
    """
    dataset = datasets.load(config.dataset, environment_for_options(config.env_options))
    require_fixed(dataset)
    if config.dataset.endswith(f"{salt.MARK}{salt.RANDOM}"):
        config = replace(config, dataset=dataset.name)  # a resumed run draws the same tasks
    task_indices = select_tasks(dataset, config.tasks, config.limit, config.sample, config.seed)
    chosen = config.agent if given_agent is None else agent_factory(given_agent)
    if program := program_of(chosen, config.agent_options):
        tasks = (dataset.tasks[index] for index in task_indices)
        require_one_instruction(program.name, ENVIRONMENTS.load(dataset.environment), tasks)
    needs_model = accepts_parameter(chosen, "model")
    owns_model = model is None and needs_model
    if taken := sorted(_OPTIONS_OF_THE_RUN & set(config.model_options)):
        raise ConfigError(
            f"{taken[0]} is no model option: give the model with --model and its address with "
            "--base-url (model= and base_url= of evaluate)"
        )
    if owns_model and config.model is not None:
        model = open_model(
            config.model, config.base_url, needs_key=needs_key, **config.model_options
        )
    _check_model_options(config, model, owns_model)
    options = _read_actions(config, chosen)
    golds = {t.id: t.solution_actions for t in dataset.tasks if t.solution_actions}
    inputs = {"model": model, "golds": golds, "max_turns": config.max_turns}
    out = config.out or Path("runs")
    plan = Plan(
        config,
        dataset,
        task_indices,
        model,
        inputs,
        options,
        {},
        out,
        given_agent=None if isinstance(chosen, str) else chosen,
    )
    agent = plan.make_agent()
    if plan.uses_model and model is not None:
        check_limits(config, model)
    if config.env_options.get("mcp") and plan.uses_model and not agent.calls_tools:
        raise ConfigError(
            f"the agent {config.agent!r} calls no tools: MCP servers need the agent tool-calling"
        )
    with open_env(config, dataset) as env:
        if config.save_every is not None:
            _require_resumable(config, agent, env)
        used_model = model if needs_model else None
        metadata = run_metadata(config, env, agent, used_model, given_agent)
    metadata["tasks_in_dataset"] = len(dataset)
    # whether two objects do the same cannot be known: only --out resumes such a run
    same = metadata if given_agent is None and (model is None or owns_model) else None
    out = config.out or unused_directory(Path("runs"), run_name(metadata), same)
    require_same_run(out, metadata)
    return replace(plan, metadata=metadata, out=out, owns_model=owns_model)


def _require_resumable(config: EvalConfig, agent: Agent, env: InterCodeEnv) -> None:
    """Raise UsageError if episodes in progress cannot go on after a crash."""
    reason = ""
    if not agent.can_resume:
        reason = f"the agent {config.agent!r} keeps a state to itself"
    elif not isinstance(env.settings, SandboxSettings):
        reason = f"the environment {env.name!r} has no sandbox whose files are kept"
    elif config.env_options.get("mcp"):
        reason = "the state of MCP servers cannot be written to a file"
    elif config.runner != LOCAL:
        reason = f"the runner {config.runner!r} keeps environments elsewhere"
    if reason:
        raise UsageError(
            f"--save-every {config.save_every}: episodes of this run cannot be saved, because "
            f"{reason}: leave it out"
        )


_OPTIONS_OF_THE_RUN = {"name", "base_url", "needs_key"}
"""Parameters of ``open_model`` that are settings of their own, or set by the plan."""


def _check_model_options(config: EvalConfig, model: Model | None, owns_model: bool) -> None:
    """Raise UsageError for model options that would be recorded and have no effect: unknown ones,
    and those of a model that was given as an object and not by a name."""
    if owns_model or not config.model_options:
        return
    check_option_names(config.model_options)
    if model is not None and config.model is None:
        raise ConfigError(
            f"model_options = {sorted(config.model_options)} have no effect on the model "
            f"{model.name!r}, which is given as an object: set them where it is made"
        )


def open_env(config: EvalConfig, dataset: Dataset) -> InterCodeEnv:
    """Make the environment of a dataset with the settings of a configuration."""
    env: InterCodeEnv = make(dataset.environment, dataset, **env_settings(config, dataset))
    return env


def env_settings(config: EvalConfig, dataset: Dataset) -> dict[str, Any]:
    """Return the settings of that environment. Raises UnknownNameError for an unknown one."""
    own, given = setting_names(dataset.environment), dict(config.env_options)
    of_run: dict[str, Any] = {"max_turns": config.max_turns}
    program = program_of(config.agent, config.agent_options)
    if "extra_layers" in own:  # the environment has sandboxes
        of_run["extra_layers"] = None if program is None else Installation.of(program)
    else:
        if program is not None:
            raise UsageError(
                f"{program.name} runs in a sandbox, and the environment {dataset.environment} has "
                "none"
            )
        given.pop("record_diffs", None)  # there are no files
    for name in given:
        if name in of_run:
            raise UnknownNameError(
                f"{name} is no setting of the environment in a run: give it as one of the run"
                if name in SETTING_NAMES
                else f"{name} is given by the agent of a run, and not as a setting"
            )
    check_setting_names(dataset.environment, given, SETTING_NAMES)
    return {**given, **of_run}


class _RecordedActions:
    """Recorded actions of several epochs. Other epochs play those of the first."""

    def __init__(self, episodes: Sequence[Trajectory]) -> None:
        self._by_epoch: dict[int, dict[str, list[str | Restart | None]]] = {}
        for t in episodes:
            actions: list[str | Restart | None] = []
            for number, step in enumerate(t.steps):
                actions += [Restart()] * (number in t.restarts)
                actions.append(None if not step.action and not step.executed else step.action)
            self._by_epoch.setdefault(t.epoch, {})[t.task] = actions

    def for_epoch(self, epoch: int) -> Mapping[str, list[str | Restart | None]]:
        """Return the actions of each task."""
        first = self._by_epoch[min(self._by_epoch)]
        return {**first, **self._by_epoch.get(epoch, {})}


def _read_actions(config: EvalConfig, agent: str | AgentFactory) -> Mapping[str, Any]:
    """Return the agent's options, with the log of ``actions=LOG`` read for a replaying agent."""
    log = config.agent_options.get("actions")
    if not isinstance(log, str) or not accepts_parameter(agent, "actions"):
        return config.agent_options
    episodes = [t for t in logs.load_log(Path(log)) if t.parent is None] or logs.load_log(Path(log))
    if not episodes:
        raise ConfigError(f"{log} has no episode whose actions could be played")
    return {**config.agent_options, "actions": _RecordedActions(episodes)}


def with_metadata(plan: Plan, trajectory: Trajectory, **more: Any) -> Trajectory:
    """Return the trajectory with the metadata of the run."""
    return replace(trajectory, run={**episode_metadata(plan.metadata), **more})
