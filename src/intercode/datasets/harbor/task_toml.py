"""The settings in a ``task.toml`` of Harbor, and those that are not supported."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from intercode.core.errors import DataError
from intercode.datasets.files import read_text
from intercode.datasets.harbor.health_check import HealthCheck, read_health_check
from intercode.datasets.harbor.settings import named_settings
from intercode.datasets.harbor.steps import StepConfig, read_steps, read_strategy
from intercode.datasets.harbor.values import (
    Table,
    read_env,
    read_optional_text,
    read_size,
    read_table,
    read_tables,
    read_timeout,
)

_SECTIONS = ("task", "metadata", "verifier", "agent", "solution", "environment")
_PUBLIC = "public"
_MEMORY, _STORAGE = 2 << 30, 10 << 30


@dataclass(frozen=True, slots=True)
class Config:
    """The supported settings of a task. Times are in seconds, sizes in bytes.

    ``agent_seconds`` is Harbor's time limit for the whole episode. ``internet`` says whether the
    task asks for a network; the caller decides whether it gets one. ``noted`` describes the
    settings that are ignored.

    ``agent_internet``: whether the agent may use a network, if that differs from ``internet``.
    ``health_check``: one before the first action. ``steps``: the steps of the task, in order; none
    for a task with one instruction. ``reward_strategy``: how their rewards are combined, ``mean``
    or ``final``. ``named``: the names of all settings that have no effect.

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
    memory: int = _MEMORY
    storage: int = _STORAGE
    internet: bool = True
    difficulty: str | None = None
    category: str | None = None
    tags: tuple[str, ...] = ()
    noted: tuple[str, ...] = ()
    agent_internet: bool | None = field(default=None, repr=False)
    health_check: HealthCheck | None = field(default=None, repr=False)
    steps: tuple[StepConfig, ...] = field(default=(), repr=False)
    reward_strategy: str = field(default="mean", repr=False)
    named: tuple[str, ...] = field(default=(), repr=False, compare=False)

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
    _reject_unsupported(path, section, verifier)
    verifier_env = read_env(path, verifier, "verifier")
    mode = section.get("network_mode")
    internet = bool(section.get("allow_internet", mode not in ("none", "no-network")))
    agent_internet = _agent_internet(path, table, internet)
    metadata = sections["metadata"]
    tags = metadata.get("tags") or sections["task"].get("keywords") or []
    return Config(
        name=str(sections["task"].get("name", "")),
        agent_seconds=read_timeout(path, sections["agent"], "agent"),
        verifier_seconds=read_timeout(path, verifier, "verifier"),
        verifier_env=verifier_env,
        solution_env=read_env(path, sections["solution"], "solution"),
        env=read_env(path, section, "environment"),
        docker_image=str(section.get("docker_image") or ""),
        workdir=str(section.get("workdir") or ""),
        memory=read_size(path, section, "memory", _MEMORY),
        storage=read_size(path, section, "storage", _STORAGE),
        internet=internet,
        difficulty=read_optional_text(metadata.get("difficulty")),
        category=read_optional_text(metadata.get("category")),
        tags=tuple(str(tag) for tag in tags) if isinstance(tags, list) else (),
        noted=tuple(_ignored_settings(sections)),
        agent_internet=None if agent_internet == internet else agent_internet,
        health_check=read_health_check(path, section, "environment"),
        steps=read_steps(path, table, verifier_env),
        reward_strategy=read_strategy(path, table),
        named=tuple(dict.fromkeys(named_settings(table))),
    )


def _reject_unsupported(path: Path, section: Table, verifier: Table) -> None:
    """Raise DataError for unsupported settings that would change the task if they were ignored."""
    reasons = {
        f"the system {section.get('os')!r}": str(section.get("os", "linux")).lower() != "linux",
        "GPUs": bool(section.get("gpus")),
        "TPUs": bool(section.get("tpu") or section.get("tpus")),
        "MCP servers": bool(section.get("mcp_servers")),
        "a verifier in an environment of its own": (
            verifier.get("environment_mode") == "separate" or "environment" in verifier
        ),
        "commands that collect files for the verifier": bool(verifier.get("collect")),
        "a verifier in another container": verifier.get("service", "main") != "main",
    }
    for what, unsupported in reasons.items():
        if unsupported:
            raise DataError(f"{path} asks for {what}, which is not supported")


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


def _ignored_settings(sections: Mapping[str, Table]) -> list[str]:
    # these texts are part of the checksum in ``task_directory``: a new wording changes hashes
    return [
        f"the {name} runs as the box's one user, not as {section['user']!r}"
        for name, section in sections.items()
        if name in ("agent", "verifier") and section.get("user")
    ]
