"""The settings in a ``task.toml`` of Harbor, and those that are not supported."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from intercode.core.errors import DataError
from intercode.datasets.files import read_text
from intercode.integrations.harbor.tasks.separate_verifier import (
    DEFAULT_MEMORY,
    DEFAULT_STORAGE,
    CollectCommand,
    SeparateVerifier,
    read_collect_commands,
    read_separate_verifier,
)
from intercode.integrations.harbor.tasks.steps import (
    HealthCheck,
    StepConfig,
    read_health_check,
    read_steps,
    read_strategy,
)
from intercode.integrations.harbor.tasks.values import (
    Table,
    named_settings,
    read_env,
    read_optional_text,
    read_size,
    read_table,
    read_tables,
    read_timeout,
    read_user,
    reject_unsupported,
)

_SECTIONS = ("task", "metadata", "verifier", "agent", "solution", "environment")
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
    memory: int = DEFAULT_MEMORY
    storage: int = DEFAULT_STORAGE
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
    except (ValueError, RecursionError) as e:  # also numbers too long, and lists too deep
        raise DataError(f"{path} is not valid TOML: {e}") from e
    sections = {name: read_table(path, table, name) for name in _SECTIONS}
    section, verifier = sections["environment"], sections["verifier"]
    reject_unsupported(path, section)
    if verifier.get("service", "main") != "main":
        raise DataError(f"{path} asks for a verifier in another container, which is not supported")
    verifier_env = read_env(path, verifier, "verifier")
    mode = section.get("network_mode")
    internet = bool(section.get("allow_internet", mode not in ("none", "no-network")))
    agent_internet = _agent_internet(path, table, internet)
    metadata = sections["metadata"]
    tags = metadata.get("tags") or sections["task"].get("keywords") or []
    steps = read_steps(path, table, verifier_env)
    separate = None if steps else read_separate_verifier(path, table)
    return Config(
        name=str(sections["task"].get("name", "")),
        agent_seconds=read_timeout(path, sections["agent"], "agent"),
        verifier_seconds=read_timeout(path, verifier, "verifier"),
        verifier_env=verifier_env,
        solution_env=read_env(path, sections["solution"], "solution"),
        env=read_env(path, section, "environment"),
        docker_image=str(section.get("docker_image") or ""),
        workdir=str(section.get("workdir") or ""),
        memory=read_size(path, section, "memory", DEFAULT_MEMORY),
        storage=read_size(path, section, "storage", DEFAULT_STORAGE),
        internet=internet,
        difficulty=read_optional_text(metadata.get("difficulty")),
        category=read_optional_text(metadata.get("category")),
        tags=tuple(str(tag) for tag in tags) if isinstance(tags, list) else (),
        agent_internet=None if agent_internet == internet else agent_internet,
        health_check=read_health_check(path, section, "environment"),
        collect=read_collect_commands(path, table),
        separate=separate,
        steps=steps,
        reward_strategy=read_strategy(path, table),
        named=_named(table, separate is not None or any(step.separate for step in steps)),
        agent_user=_agent_user(path, table),
        verifier_user=read_user(path, verifier, "verifier"),
    )


def _agent_internet(path: Path, table: Table, internet: bool) -> bool:
    """Return whether the agent may use a network in all of its phases.

    A list of allowed hosts cannot be enforced, so such an agent gets none.
    """
    baseline = read_table(path, table, "environment").get("network_mode")
    task = read_table(path, table, "agent").get("network_mode", baseline)
    steps = [read_table(path, step, "agent") for step in read_tables(path, table, "steps")]
    modes = [step.get("network_mode", task) for step in steps] or [task]
    for mode in (*modes, baseline):
        if mode not in (None, _PUBLIC, "allowlist", "no-network", "none"):
            raise DataError(f"{path}: network_mode = {mode!r} is not a network mode")
    return all(mode == _PUBLIC or (mode is None and internet) for mode in modes)


def _agent_user(path: Path, table: Table) -> str:
    """Return the user of the agent. Raises DataError if steps have different ones, because one
    shell plays them all."""
    task = read_table(path, table, "agent")
    steps = [
        read_table(path, step, "agent", "steps.") for step in read_tables(path, table, "steps")
    ]
    users = {read_user(path, {**task, **step}, "agent") for step in steps or [{}]}
    if len(users) > 1:
        raise DataError(
            f"{path}: the steps have several users of the agent, which is not supported: give all "
            f"steps the same, and not {' and '.join(user or 'root' for user in sorted(users))}"
        )
    return users.pop()


def _named(table: Table, has_separate_verifier: bool) -> tuple[str, ...]:
    """Return the settings without an effect. Artifacts have one if a verifier receives them."""
    names = dict.fromkeys(named_settings(table))
    if not has_separate_verifier:
        steps = table.get("steps") or []
        names |= {"artifacts": None} if table.get("artifacts") else {}
        names |= {"steps.artifacts": None} if any(s.get("artifacts") for s in steps) else {}
    return tuple(names)
