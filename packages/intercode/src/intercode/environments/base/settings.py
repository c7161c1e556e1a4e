"""The settings of environments. Each is declared once, with its default and a description."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from intercode.core.errors import UsageError
from intercode.core.settings import check_types, setting
from intercode.core.types import Image, Layer, Network
from intercode.environments.base.rewards import RewardMode
from intercode_sandbox.contract import Limits
from intercode_sandbox.determinism import resolve_determinism
from intercode_sandbox.validation import check_network, check_timeout, read_limits

if TYPE_CHECKING:
    from intercode.environments.base.policy import PolicySource
    from intercode.environments.base.rewards import RewardFunction
    from intercode_sandbox.determinism import Determinism

MAX_RECORDED_TIMEOUT = 600.0
"""The longest timeout, in seconds, that a record of others may choose."""
_LEAST_TIMEOUT = 0.1  # seconds
_LIMITS = tuple(f.name for f in fields(Limits) if f.name != "cgroups")


def is_flag(value: object) -> bool:
    """Return whether a value is True or False."""
    return isinstance(value, bool)


def is_recorded_timeout(value: object) -> bool:
    """Return whether a value is None or a timeout that a record of others may choose."""
    return value is None or (isinstance(value, int | float) and 0 < value <= MAX_RECORDED_TIMEOUT)


@dataclass(frozen=True, kw_only=True)
class EnvironmentSettings:
    """The settings that every environment has.

    >>> import intercode
    >>> with intercode.make("sql", max_turns=5, reward_mode="delta") as env:
    ...     env.settings.max_turns, env.settings.reward_mode
    (5, 'delta')
    """

    profile: str = setting("standard", "standard, or another profile of the environment")
    image: str | None = setting(None, "the root file system; none: that of the dataset")
    backend: str = setting("auto", "the back end of sandboxes")
    network: Network = setting(
        "none",
        "none, host: the machine's own network, or allow:HOST,...: hosts that can be reached (page "
        "Network)",
    )
    timeout: float = setting(10.0, "seconds for each action")
    max_turns: int | None = setting(
        None, "an episode is truncated after that many actions, and its state scored; none: never"
    )
    reward: str | RewardFunction | None = setting(
        None,
        "a name, package.module:function or a function (task, agent, gold) -> Score; variants pays "
        "a solution as far as it holds in variants of its task (page Variants)",
    )
    reward_mode: RewardMode = setting(
        "final",
        "final pays the score at the end, per-turn what a turn adds to the best score before, "
        "delta the change of the score",
    )
    render_mode: Literal["ansi"] | None = setting(None, "ansi: render returns the transcript")
    deterministic: bool | Mapping[str, Any] | Determinism = setting(
        False,
        "true, or fields of Determinism: the same actions give the same observations",
    )
    hashes: bool | None = setting(
        None, "info has hashes of observation and state; none: if deterministic"
    )
    policy: PolicySource | None = setting(
        None,
        "rules over actions (page Action policies), as a TOML file or its content; no security "
        "boundary",
    )
    mcp: Mapping[str, str] | None = setting(
        None, "commands of MCP servers by name, for further tools (page MCP)"
    )

    def __post_init__(self) -> None:
        """Raise UsageError for a setting that has not its declared type (see ``check_types``), and
        for a limit with which no action could run."""
        if self.timeout is None:
            self._set(timeout=type(self).timeout)
        check_types(self)
        self._set(network=check_network(self.network))
        self._check_seconds("timeout")
        if self.max_turns is not None and self.max_turns < 1:
            raise UsageError(
                f"max_turns is a number of at least 1, or None for no limit, not {self.max_turns}"
            )

    def _check_seconds(self, name: str) -> None:
        """Raise UsageError for a time limit with which nothing could run."""
        seconds = getattr(self, name)
        check_timeout(seconds, name)
        if seconds is not None and seconds < _LEAST_TIMEOUT:
            raise UsageError(f"{name} = {seconds!r} s is too short: give at least {_LEAST_TIMEOUT}")

    def _set(self, **values: Any) -> None:
        """Replace values that stand for others, before anybody reads them."""
        vars(self).update(values)

    def determinism(self) -> Determinism | None:
        """Return what ``deterministic`` stands for. Raises UsageError for an environment that
        cannot be deterministic."""
        if self.deterministic is not False:
            raise UsageError("this environment runs no sandbox: omit deterministic")
        return None

    def recorded(self) -> dict[str, Any]:
        """Return what results record of the environment's own settings, the ``env_options``."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.metadata.get("recorded")}
        return {"env_options": own} if own else {}


@dataclass(frozen=True, kw_only=True)
class SandboxSettings(EnvironmentSettings):
    """The settings of environments that run code in a sandbox.

    >>> import intercode
    >>> with intercode.make("bash", timeout=30, recycle=True) as env:
    ...     env.settings.timeout, env.settings.recycle, env.settings.network
    (30, True, 'none')
    """

    recycle: bool = setting(
        False,
        "sandboxes are reset in place between episodes, which takes a fifth of the processor time "
        "of new ones; their namespaces are kept (page Training)",
        from_record=is_flag,
    )
    record_diffs: bool = setting(False, "results have the changes that each turn made to files")
    extra_layers: Callable[[Image], tuple[Layer, ...]] | None = setting(
        None,
        "returns layers over an image, below those of the tasks, such as the program of an agent",
    )
    limits: Mapping[str, Any] | Limits = setting(
        None,
        "limits of the sandboxes that are not the environment's own, such as "
        '{"memory": "2g", "processes": 64}, by the names of intercode_sandbox.Limits, which sets '
        "them all",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(limits=pick_limits(self.limits))

    def determinism(self) -> Determinism | None:
        return resolve_determinism(self.deterministic)


def pick_limits(given: Mapping[str, Any] | Limits | None) -> dict[str, int | float]:
    """Return the limits of sandboxes that a setting names, sorted. Raises UsageError."""
    if given is None:
        return {}
    if isinstance(given, Limits):
        given = {name: getattr(given, name) for name in _LIMITS}
    if isinstance(given, Mapping):
        given = {name: value for name, value in given.items() if value is not None}
    values = read_limits(given, _LIMITS)
    Limits(**values)  # type: ignore[arg-type]
    return dict(sorted(values.items()))
