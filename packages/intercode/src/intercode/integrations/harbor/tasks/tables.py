"""The tables of a ``task.toml``: the types of their settings, and what becomes of each setting."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from intercode.core.decoding import Decoder, bounded, shown
from intercode.core.errors import UsageError
from intercode_sandbox.sizes import parse_size

DEFAULT_SECONDS = 600.0
_MAX_SIZE = 1 << 60  # bytes
_STEP_NAME = re.compile(r'(?!\.{1,2}$)[^<>:"/\\|?*\x00-\x1f\x7f]{1,255}(?<![. ])')


def _size(unit: str = "") -> Decoder:
    """Return a function that makes the number of bytes of a number or a text."""

    def size_of(value: Any) -> int:
        try:
            size = parse_size(f"{value}{unit}")
        except UsageError:
            size = 0
        if not 0 < size < _MAX_SIZE:
            raise ValueError(f"is {shown(value)}, which is not a size")
        return size

    return size_of


def _unsupported(what: str, allowed: tuple[str, ...] = ()) -> Decoder:
    """Return a function that refuses values, because a task would change if they were ignored."""

    def refuse(value: Any) -> Any:
        if value and not (isinstance(value, str) and value.lower() in allowed):
            raise ValueError(f"asks for {what} ({shown(value)}), which is not supported")
        return value

    return refuse


def _plain_env(given: Mapping[str, Any]) -> dict[str, str]:
    """Return environment variables. ``${NAME}`` would be replaced by a variable of this machine and
    is refused; ``${NAME:-value}`` becomes ``value``."""
    variables = {}
    for key, value in given.items():
        text = str(value)
        reference = re.fullmatch(r"\$\{(\w+)(?::-(.*))?\}", text)
        if reference and reference[2] is None:
            raise ValueError(
                f"would pass this machine's variable {reference[1]} to code of the task; to allow "
                "that, write its value instead"
            )
        variables[str(key)] = reference[2] if reference else text
    return variables


def _command(text: str) -> str:
    if not text.strip():
        raise ValueError("needs a command")
    return text


def _step_name(name: str) -> str:
    if not _STEP_NAME.fullmatch(name):
        raise ValueError(f"is {name!r}, which is not the name of a directory")
    return name


def _user(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"must be a name or a number, not {shown(value)}")
    return "" if str(value) in ("root", "0") else str(value)


def _retries(value: Any) -> int:
    if isinstance(value, bool) or value not in range(1001):  # 3.0 is
        raise ValueError(f"must be a whole number from 0 to 1000, not {shown(value)}")
    return int(value)


Seconds = Annotated[float, bounded(0, 1e7)]
Timeout = Annotated[float, bounded(0, 1e7, above=True)]
Env = Annotated[Mapping[str, Any], _plain_env]
User = Annotated[Any, _user]
"""A name or a number; empty for root."""
Command = Annotated[str, _command]
NetworkMode = Literal["public", "allowlist", "no-network", "none"]
Container = Annotated[Any, _unsupported("a container besides the agent's", ("main",))]


class _Table:
    """A table that may have further settings, of which ``SETTINGS`` says what becomes."""

    other_keys: ClassVar[bool] = True
    form: ClassVar[str] = "a table"


@dataclass(frozen=True, slots=True)
class HealthCheck(_Table):
    """A command that has to end with 0 before the agent begins. Times are in seconds.

    It fails after ``retries`` failures in a row, ``interval`` apart. Those of the first
    ``start_period`` do not count, and are ``start_interval`` apart. ``timeout`` limits each run.
    """

    command: Command
    interval: Seconds = field(default=5.0, metadata={"key": "interval_sec"})
    timeout: Timeout = field(default=30.0, metadata={"key": "timeout_sec"})
    start_period: Seconds = field(default=0.0, metadata={"key": "start_period_sec"})
    start_interval: Seconds = field(default=5.0, metadata={"key": "start_interval_sec"})
    retries: Annotated[Any, _retries] = 3


@dataclass(frozen=True, slots=True)
class CollectCommand(_Table):
    """A command that runs in the agent's sandbox before its state is verified. ``user``: empty for
    root."""

    command: Command
    timeout: Timeout = field(default=60.0, metadata={"key": "timeout_sec"})
    user: User = ""
    service: Container = field(default="", repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Artifact(_Table):
    """A file or directory that a separate verifier receives at the same path.

    ``exclude``: patterns of names or paths in the directory that are left out, as for ``tar``.
    """

    source: str
    exclude: tuple[str, ...] = ()
    destination: str = field(default="", repr=False)  # where Harbor keeps it for people
    service: Container = field(default="", repr=False, compare=False)


@dataclass(frozen=True)
class EnvironmentTable(_Table):
    """The settings of a sandbox. Sizes are in bytes; older files have texts such as ``"2G"`` and no
    numbers of MiB."""

    docker_image: str = ""
    workdir: str = ""
    env: Env = field(default_factory=dict)
    memory_mb: Annotated[Any, _size("M")] = 0
    memory: Annotated[Any, _size()] = 2 << 30
    storage_mb: Annotated[Any, _size("M")] = 0
    storage: Annotated[Any, _size()] = 10 << 30
    allow_internet: Any = None
    network_mode: NetworkMode | None = None
    healthcheck: HealthCheck | None = None
    os: Annotated[Any, _unsupported("another system", ("linux",))] = ""
    gpus: Annotated[Any, _unsupported("GPUs")] = 0
    tpu: Annotated[Any, _unsupported("TPUs")] = 0
    tpus: Annotated[Any, _unsupported("TPUs")] = 0
    mcp_servers: Annotated[Any, _unsupported("MCP servers")] = ()


@dataclass(frozen=True)
class AgentTable(_Table):
    """The settings of the agent, of a task or of a step."""

    timeout_sec: Timeout = DEFAULT_SECONDS
    user: User | None = None
    network_mode: NetworkMode | None = None


@dataclass(frozen=True)
class VerifierTable(_Table):
    """The settings of the verifier, of a task or of a step."""

    timeout_sec: Timeout = DEFAULT_SECONDS
    env: Env = field(default_factory=dict)
    user: User | None = None
    network_mode: NetworkMode | None = None
    environment_mode: Literal["shared", "separate"] | None = None
    environment: EnvironmentTable | None = None
    collect: tuple[CollectCommand, ...] = ()
    service: Container = ""


@dataclass(frozen=True)
class StepTable(_Table):
    """The settings of a step. ``artifacts`` are read if a verifier receives them."""

    name: Annotated[str, _step_name]
    min_reward: float | Mapping[str, float] | None = None
    agent: AgentTable = field(default_factory=AgentTable)
    verifier: VerifierTable = field(default_factory=VerifierTable)
    healthcheck: HealthCheck | None = None
    artifacts: Any = ()


@dataclass(frozen=True)
class SolutionTable(_Table):
    """The settings of the solution."""

    env: Env = field(default_factory=dict)


@dataclass(frozen=True)
class TaskTable(_Table):
    """A whole ``task.toml``."""

    task: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    agent: AgentTable = field(default_factory=AgentTable)
    verifier: VerifierTable = field(default_factory=VerifierTable)
    environment: EnvironmentTable = field(default_factory=EnvironmentTable)
    solution: SolutionTable = field(default_factory=SolutionTable)
    steps: tuple[StepTable, ...] = ()
    multi_step_reward_strategy: Literal["mean", "final"] = "mean"
    artifacts: Any = ()


# Every setting of Harbor's ``task.toml``, and what becomes of it here.
DONE, INFORMATION, NAMED, REFUSED = "done", "information", "named", "refused"
_NETWORK = {"network_mode": DONE, "allowed_hosts": NAMED}
SETTINGS: dict[str, dict[str, str]] = {
    "": {
        "version": INFORMATION,
        "schema_version": INFORMATION,
        "source": INFORMATION,
        "task": INFORMATION,
        "metadata": INFORMATION,
        "agent": DONE,
        "verifier": DONE,
        "environment": DONE,
        "solution": DONE,
        "multi_step_reward_strategy": DONE,
        "steps": DONE,
        "artifacts": DONE,
    },
    "agent": {"timeout_sec": NAMED, "user": DONE, **_NETWORK},
    "verifier": {
        "timeout_sec": DONE,
        "env": DONE,
        "user": DONE,
        "network_mode": NAMED,
        "allowed_hosts": NAMED,
        "environment_mode": DONE,
        "environment": DONE,
        "collect": DONE,
        "service": REFUSED,
    },
    "environment": {
        "docker_image": DONE,
        "env": DONE,
        "workdir": DONE,
        "memory_mb": DONE,
        "memory": DONE,
        "storage_mb": DONE,
        "storage": DONE,
        "allow_internet": DONE,
        **_NETWORK,
        "build_timeout_sec": NAMED,
        "cpus": NAMED,
        "gpu_types": NAMED,
        "skills_dir": NAMED,
        "healthcheck": DONE,
        "os": REFUSED,
        "gpus": REFUSED,
        "tpu": REFUSED,
        "tpus": REFUSED,
        "mcp_servers": REFUSED,
    },
    "solution": {"env": DONE},
    "steps": {
        "name": DONE,
        "min_reward": DONE,
        "agent": DONE,
        "verifier": DONE,
        "healthcheck": DONE,
        "artifacts": DONE,
    },
    "healthcheck": dict.fromkeys(
        (
            "command",
            "interval_sec",
            "timeout_sec",
            "retries",
            "start_period_sec",
            "start_interval_sec",
        ),
        DONE,
    ),
    "artifacts": {
        "source": DONE,
        "exclude": DONE,
        "destination": INFORMATION,
        "service": REFUSED,
    },
    "collect": {"command": DONE, "timeout_sec": DONE, "service": REFUSED, "user": DONE},
}
"""What becomes of each setting, by the name of its table (empty: the root).

``done``: it applies. ``information``: it has no effect in Harbor either. ``named``: it has no
effect, and the dataset's warnings name it. ``refused``: a value that would change the task is an
error; values that change nothing, such as ``gpus = 0``, are not.
"""


def named_settings(table: Mapping[str, Any], kind: str = "", path: str = "") -> Iterator[str]:
    """Yield the names of the settings in a ``task.toml`` that have no effect, with those that
    ``SETTINGS`` lacks."""
    for key, value in table.items():
        treatment = SETTINGS[kind].get(key, NAMED)
        if treatment == NAMED:
            yield f"{path}{key}"
        elif key in SETTINGS:
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, dict):
                    yield from named_settings(inner, key, f"{path}{key}.")
