"""The settings in a ``task.toml`` of Harbor, and those that are not supported."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from intercode.core.decoding import decode_as
from intercode.core.errors import DataError
from intercode.datasets.files import read_text
from intercode.integrations.harbor.tasks.separate_verifier import (
    SeparateVerifier,
    read_separate_verifier,
)
from intercode.integrations.harbor.tasks.steps import StepConfig, read_steps
from intercode.integrations.harbor.tasks.tables import (
    CollectCommand,
    EnvironmentTable,
    HealthCheck,
    TaskTable,
    named_settings,
)

_PUBLIC = "public"


@dataclass(frozen=True, slots=True)
class Config:
    """The supported settings of a task. Times are in seconds, sizes in bytes.

    ``agent_seconds`` is Harbor's time limit for the whole episode. ``internet`` says whether the
    task asks for a network; the caller decides whether it gets one.

    ``agent_internet``: whether the agent may use a network, if that differs from ``internet``.
    ``health_check``: one before the first action. ``collect``: commands that precede the verifier.
    ``separate``: its own sandbox, if it has one. ``steps``: the steps of the task, in order; none
    for a task with one instruction. ``reward_strategy``: how their rewards are combined, ``mean``
    or ``final``. ``named``: the names of all settings that have no effect. ``agent_user``,
    ``verifier_user``: names or numbers of the users who act; empty for root.

    The settings with ``repr=False`` came later. They are a part of the checksum of a task only
    where they are set, so that the hashes of other tasks stay.
    """

    name: str = ""
    agent_seconds: float = 600.0
    verifier_seconds: float = 600.0
    verifier_env: Mapping[str, str] = field(default_factory=dict)
    solution_env: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    docker_image: str = ""
    workdir: str = ""
    memory: int = EnvironmentTable.memory
    storage: int = EnvironmentTable.storage
    internet: bool = True
    difficulty: str | None = None
    category: str | None = None
    tags: tuple[str, ...] = ()
    agent_internet: bool | None = field(default=None, repr=False)
    health_check: HealthCheck | None = field(default=None, repr=False)
    collect: tuple[CollectCommand, ...] = field(default=(), repr=False)
    separate: SeparateVerifier | None = field(default=None, repr=False)
    steps: tuple[StepConfig, ...] = field(default=(), repr=False)
    reward_strategy: str = field(default="mean", repr=False)
    named: tuple[str, ...] = field(default=(), repr=False, compare=False)
    agent_user: str = field(default="", repr=False)
    verifier_user: str = field(default="", repr=False)

    @property
    def allows_network(self) -> bool:
        """Whether the agent may use a network."""
        return self.internet if self.agent_internet is None else self.agent_internet


def read_config(path: Path) -> Config:
    """Return the settings in a ``task.toml``. Raises DataError that names the setting."""
    try:
        table = tomllib.loads(read_text(path))
        repr(table)  # fails for numbers of too many digits in hexadecimal, too
    except (ValueError, RecursionError) as e:  # also numbers too long, and lists too deep
        raise DataError(f"{path} is not valid TOML: {e}") from e
    task: TaskTable = decode_as(TaskTable, table, path)
    section, verifier, metadata = task.environment, task.verifier, task.metadata
    internet = section.allow_internet
    if internet is None:
        internet = section.network_mode not in ("none", "no-network")
    agent_internet = _agent_internet(task, bool(internet))
    tags = metadata.get("tags") or task.task.get("keywords") or []
    steps = read_steps(path, task)
    separate = None if steps else read_separate_verifier(path, task)
    return Config(
        name=str(task.task.get("name", "")),
        agent_seconds=task.agent.timeout_sec,
        verifier_seconds=verifier.timeout_sec,
        verifier_env=verifier.env,
        solution_env=task.solution.env,
        env=section.env,
        docker_image=section.docker_image,
        workdir=section.workdir,
        memory=section.memory_mb or section.memory,
        storage=section.storage_mb or section.storage,
        internet=bool(internet),
        difficulty=_text_or_none(metadata.get("difficulty")),
        category=_text_or_none(metadata.get("category")),
        tags=tuple(str(tag) for tag in tags) if isinstance(tags, list) else (),
        agent_internet=None if agent_internet == internet else agent_internet,
        health_check=section.healthcheck,
        collect=verifier.collect,
        separate=separate,
        steps=steps,
        reward_strategy=task.multi_step_reward_strategy,
        named=_named(table, separate is not None or any(step.separate for step in steps)),
        agent_user=_agent_user(path, task),
        verifier_user=verifier.user or "",
    )


def _text_or_none(value: object) -> str | None:
    return str(value) if value else None


def _agent_internet(task: TaskTable, internet: bool) -> bool:
    """Return whether the agent may use a network in all of its phases.

    A list of allowed hosts cannot be enforced, so such an agent gets none.
    """
    shared = task.agent.network_mode or task.environment.network_mode
    modes = [step.agent.network_mode or shared for step in task.steps] or [shared]
    return all(mode == _PUBLIC or (mode is None and internet) for mode in modes)


def _agent_user(path: Path, task: TaskTable) -> str:
    """Return the user of the agent. Raises DataError if steps have different ones, because one
    shell plays them all."""
    own = [step.agent.user for step in task.steps] or [None]
    users = {(task.agent.user if user is None else user) or "" for user in own}
    if len(users) > 1:
        raise DataError(
            f"{path}: the steps have several users of the agent, which is not supported: give all "
            f"steps the same, and not {' and '.join(user or 'root' for user in sorted(users))}"
        )
    return users.pop()


def _named(table: Mapping[str, Any], has_separate_verifier: bool) -> tuple[str, ...]:
    """Return the settings without an effect. Artifacts have one if a verifier receives them."""
    names = dict.fromkeys(named_settings(table))
    if not has_separate_verifier:
        steps = table.get("steps") or []
        names |= {"artifacts": None} if table.get("artifacts") else {}
        names |= {"steps.artifacts": None} if any(s.get("artifacts") for s in steps) else {}
    return tuple(names)
