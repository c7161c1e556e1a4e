"""What a run is made of, and what of it is still to be done."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import intercode
from intercode import datasets, logs, trajectories
from intercode.agents import accepts, open_agent
from intercode.agents.base import Agent
from intercode.config import EvalConfig
from intercode.envs import ENVIRONMENTS, make
from intercode.envs.base import InterCodeEnv
from intercode.errors import ConfigError, UsageError
from intercode.models import Model, open_model
from intercode.registry import unknown
from intercode.types import Dataset, Trajectory, plain

SETTINGS = (*trajectories.IDENTITY, "timeout", "seed", "agent_options", "model_options")
"""What must be equal for two commands to be one run. Not: tasks and limit, so that a run can be
widened; parallel and the endpoint's address, which change no result."""

_SECRET = ("api_key",)


@dataclass(frozen=True)
class Plan:
    """A run that can be worked on from many threads: ``env`` and ``agent`` make new ones.

    ``chosen`` are positions in the dataset, in its order; ``facts`` what every result names.
    """

    config: EvalConfig
    dataset: Dataset
    chosen: tuple[int, ...]
    model: Model | None
    offers: Mapping[str, Any]
    options: Mapping[str, Any]
    facts: Mapping[str, Any]
    out: Path

    @property
    def file(self) -> Path:
        """Where the trajectories are."""
        return self.out / trajectories.TRAJECTORIES_FILE

    def env(self) -> InterCodeEnv:
        """A new environment."""
        return open_env(self.config, self.dataset)

    def agent(self) -> Agent:
        """A new agent."""
        return open_agent(self.config.agent, self.options, **self.offers)

    def done(self) -> list[Trajectory]:
        """The chosen tasks' episodes on disk that ended without an error, one a task."""
        if not self.file.exists():
            return []
        ids = {self.dataset.tasks[i].id for i in self.chosen}
        good = (t for t in trajectories.read(self.file) if t.end != "error" and t.error is None)
        return list({t.task: t for t in good if t.task in ids}.values())

    def failures(self) -> list[str]:
        """The last error of each chosen task that is on disk without a good episode."""
        open_ids = {self.dataset.tasks[i].id for i in self.pending()}
        if not open_ids or not self.file.exists():
            return []
        errors = {t.task: t.error or "no reason recorded" for t in trajectories.read(self.file)}
        return [text for task, text in errors.items() if task in open_ids]

    def pending(self) -> list[int]:
        """The positions that have no such episode yet."""
        done = {t.task for t in self.done()}
        return [i for i in self.chosen if self.dataset.tasks[i].id not in done]


def make_plan(config: EvalConfig, model: Model | None = None) -> Plan:
    """Everything a run needs, opened and checked before its first episode. Writes nothing.

    ``model`` takes the place of the one that the configuration names. Raises UsageError and its
    kin for whatever cannot be, among them an ``out`` that holds another run.
    """
    dataset = datasets.load(config.dataset)
    chosen = choose(dataset, config.tasks, config.limit)
    needs_model = accepts(config.agent, "model")
    if model is None and config.model is not None and needs_model:
        model = open_model(config.model, config.base_url, **config.model_options)
    options = _read_actions(config)
    golds = {t.id: (t.solution,) for t in dataset.tasks if t.solution is not None}
    offers = {"model": model, "golds": golds, "max_turns": config.max_turns}
    agent = open_agent(config.agent, options, **offers)
    with open_env(config, dataset) as env:
        facts = {**env.facts(), **_facts(config, agent, model if needs_model else None)}
    facts["tasks_in_dataset"] = len(dataset)
    facts = plain(facts)
    out = config.out or free_directory(Path("runs"), run_name(facts), facts)
    refuse_other(out, facts)
    return Plan(config, dataset, chosen, model, offers, options, facts, out)


def open_env(config: EvalConfig, dataset: Dataset) -> InterCodeEnv:
    """The environment that a dataset is played in, under the conditions of a configuration."""
    general = {
        "profile": config.profile, "image": config.image, "sandbox": config.sandbox,
        "network": config.network, "timeout": config.timeout, "max_turns": config.max_turns,
        "reward": config.reward, "deterministic": config.determinism,
        "hashes": config.hashes or None,
    }  # fmt: skip
    kind = ENVIRONMENTS.load(dataset.environment)
    own = {n for c in kind.__mro__ for n in getattr(c.__init__, "__kwdefaults__", None) or ()}
    for name in config.env_options:
        if name not in own - set(general):
            raise unknown("environment option", name, sorted(own - set(general)))
    env: InterCodeEnv = make(dataset.environment, dataset, **general, **config.env_options)
    return env


def choose(dataset: Dataset, wanted: Sequence[str], limit: int | None) -> tuple[int, ...]:
    """Positions of the tasks asked for by id or position, in the dataset's order.

    Raises UnknownNameError for an id that is not there, UsageError for a position out of range.
    """
    by_id = {task.id: i for i, task in enumerate(dataset.tasks)}
    found = set()
    for name in wanted:
        if name in by_id:
            found.add(by_id[name])
        elif not name.isdigit():
            raise unknown(f"task of {dataset.name}", name, list(by_id))
        elif int(name) >= len(dataset):
            raise UsageError(f"task {name} is out of range: {dataset.name} has {len(dataset)}")
        else:
            found.add(int(name))
    positions = sorted(found) if wanted else range(len(dataset))
    return tuple(itertools.islice(positions, limit))


def _facts(config: EvalConfig, agent: Agent, model: Model | None) -> dict[str, Any]:
    bounds = [n for n in (config.max_turns, agent.max_turns) if n is not None]
    facts = {
        "agent": config.agent,
        "model": None if model is None else config.model or model.name,
        "max_turns": min(bounds, default=None),
        "seed": config.seed,
        "agent_options": config.agent_options,
        "model_options": {k: v for k, v in config.model_options.items() if k not in _SECRET},
        "version": intercode.__version__,
    }
    if endpoint := getattr(model, "endpoint", None):
        facts["endpoint"] = endpoint
    return facts


def _read_actions(config: EvalConfig) -> Mapping[str, Any]:
    """The agent's options, with ``actions=LOG`` read for an agent that plays recorded actions."""
    log = config.agent_options.get("actions")
    if not isinstance(log, str) or not accepts(config.agent, "actions"):
        return config.agent_options
    episodes = logs.load(Path(log))
    if not episodes:
        raise ConfigError(f"{log} holds no episode whose actions could be played")
    actions = {
        t.task: [None if not s.action and not s.executed else s.action for s in t.steps]
        for t in episodes
    }
    return {**config.agent_options, "actions": actions}


# ------------------------------------------------------------- directories
def run_name(facts: Mapping[str, Any]) -> str:
    """``<dataset>-<agent>-<model>-<date>``, fit for a file's name."""
    day = datetime.date.today().isoformat()
    dataset = Path(str(facts["dataset"])).name
    parts = [dataset, str(facts["agent"]), str(facts["model"] or ""), day]
    return "-".join(re.sub(r"[^\w.]+", "-", p).strip("-") for p in parts if p)


def free_directory(parent: Path, name: str, facts: Mapping[str, Any]) -> Path:
    """``parent/name``, or ``name-2`` and so on where another run has it."""
    for number in itertools.count(1):
        path = parent / (name if number == 1 else f"{name}-{number}")
        if not _differences(path, facts):
            return path
    raise AssertionError("unreachable: the numbers do not end")


def refuse_other(out: Path, facts: Mapping[str, Any]) -> None:
    """Raise UsageError where ``out`` holds a run with other settings, naming the first."""
    for key, old in _differences(out, facts):
        raise UsageError(
            f"{out} holds a run with {key} {old!r}, not {facts.get(key)!r}: give another --out, "
            "or the same settings to finish that run"
        )


def _differences(out: Path, facts: Mapping[str, Any]) -> list[tuple[str, Any]]:
    old = _recorded(out)
    if old is None:
        return []
    return [(k, old.get(k)) for k in SETTINGS if old.get(k) != facts.get(k)]


def _recorded(out: Path) -> Mapping[str, Any] | None:
    """The facts of the run in a directory: its run.json's, else its first trajectory's."""
    if (out / trajectories.RUN_FILE).exists():
        return trajectories.read_run(out)
    file = out / trajectories.TRAJECTORIES_FILE
    first = next(trajectories.read(file), None) if file.exists() else None
    return None if first is None else first.run


def begin(plan: Plan) -> None:
    """Make the run's directory and its run.json, unless they are there."""
    if not (plan.out / trajectories.RUN_FILE).exists():
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        trajectories.write_run(plan.out, {**plan.facts, "started": now})


def with_facts(plan: Plan, trajectory: Trajectory, **more: Any) -> Trajectory:
    """The trajectory with what it was obtained with."""
    return replace(trajectory, run={**plan.facts, **more})
