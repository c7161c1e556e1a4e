"""What an evaluation is asked to do: from a TOML file, from ``key=value``, or both."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from intercode.errors import ConfigError
from intercode.registry import unknown
from intercode.types import Network, Profile


@dataclass(frozen=True, slots=True)
class EvalConfig:
    """One evaluation: a dataset, an agent, and the conditions.

    ``tasks`` are ids or positions, none meaning all; ``limit`` takes the first so many of them.
    ``max_turns`` None leaves the agent's own bound. ``timeout`` is in seconds per action.
    ``out`` None means a directory under ``runs`` (see runner/plan.py). ``image``, ``reward``: None
    for the dataset's and the environment's own. ``deterministic``: true, or settings of
    sandboxes/determinism.py; ``clock`` is one of them. ``hashes``: every step tells its hashes,
    also where it is not deterministic. ``env_options``: settings of one environment's own, such
    as BashEnv's ``session``.
    """

    dataset: str
    agent: str
    model: str | None = None
    base_url: str | None = None
    max_turns: int | None = None
    parallel: int = 4
    limit: int | None = None
    tasks: tuple[str, ...] = ()
    seed: int | None = None
    out: Path | None = None
    profile: Profile = "standard"
    image: str | None = None
    network: Network = "none"
    sandbox: str = "auto"
    timeout: float = 10.0
    reward: str | None = None
    deterministic: bool | Mapping[str, Any] = False
    clock: str | None = None
    hashes: bool = False
    env_options: Mapping[str, Any] = field(default_factory=dict)
    agent_options: Mapping[str, Any] = field(default_factory=dict)
    model_options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def determinism(self) -> bool | Mapping[str, Any]:
        """What an environment is to be given as ``deterministic``."""
        if self.clock is None:
            return self.deterministic
        given = self.deterministic if isinstance(self.deterministic, Mapping) else {}
        return {**given, "clock": self.clock}


_KINDS: dict[str, tuple[type, ...]] = {
    "max_turns": (int,), "parallel": (int,), "limit": (int,), "seed": (int,),
    "tasks": (list, tuple), "out": (str, Path), "timeout": (int, float),
    "env_options": (dict,), "agent_options": (dict,), "model_options": (dict,),
    "deterministic": (bool, dict), "hashes": (bool,),
}  # fmt: skip
"""What a setting may be where it is no text."""


def make_config(values: Mapping[str, Any], where: str = "the settings") -> EvalConfig:
    """The configuration that ``values`` give; ``where`` names their source in messages.

    Raises UnknownNameError for a key that does not exist, ConfigError for a value of the wrong
    form or a missing dataset or agent.
    """
    known = [f.name for f in fields(EvalConfig)]
    for key, value in values.items():
        if key not in known:
            raise unknown(f"setting in {where}", key, known)
        kinds = _KINDS.get(key, (str,))
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            wanted = " or ".join(k.__name__ for k in kinds)
            raise ConfigError(f"{where}: {key} = {value!r} is no {wanted}")
    for key in ("max_turns", "parallel", "limit"):
        if values.get(key, 1) < 1:
            raise ConfigError(f"{where}: {key} = {values[key]} has to be at least 1")
    if not 0 < values.get("timeout", 1) < float("inf"):
        raise ConfigError(f"{where}: timeout = {values['timeout']} s has to be greater than 0")
    for key in ("dataset", "agent"):
        if not values.get(key):
            raise ConfigError(f"no {key} is given; name one, such as {_SUCH_AS[key]}")
    settled = dict(values)
    settled["tasks"] = tuple(str(task) for task in values.get("tasks", ()))
    if "out" in values:
        settled["out"] = Path(values["out"])
    return EvalConfig(**settled)


_SUCH_AS = {"dataset": "starter", "agent": "--agent try-again"}


def read_toml(path: Path) -> dict[str, Any]:
    """The settings in a TOML file. Raises ConfigError that names the file and the place."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as e:
        raise ConfigError(f"{path}: no TOML: {e}") from e
    except UnicodeDecodeError as e:
        raise ConfigError(f"{path} is not UTF-8 text: {e.reason} at byte {e.start}") from e
    except OSError as e:
        raise ConfigError(f"cannot read {path}: {e.strerror}") from e


def parse_pairs(pairs: Sequence[str]) -> dict[str, Any]:
    """``key=value`` texts as a dictionary; a value that is JSON is taken as such.

    Raises ConfigError for a text without ``=``.
    """
    out: dict[str, Any] = {}
    for pair in pairs:
        key, mark, text = pair.partition("=")
        if not mark or not key:
            raise ConfigError(f"{pair!r} is not of the form key=value")
        try:
            out[key] = json.loads(text)
        except ValueError:
            out[key] = text
    return out
