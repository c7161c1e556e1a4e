"""What an evaluation is asked to do: from a TOML file, from ``key=value``, or both."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from intercode.core.errors import ConfigError
from intercode.core.registry import unknown_name_error
from intercode.core.types import Network, Profile


@dataclass(frozen=True, slots=True)
class EvalConfig:
    """One evaluation: a dataset, an agent, and the conditions.

    ``tasks`` are ids or positions, none meaning all; ``limit`` takes the first so many of them, and
    each is played ``epochs`` times. ``seed``: see ``Plan.seed`` for what an episode makes of it.
    ``shuffle``: the order of play is drawn from the seed; no result depends on it.
    ``max_turns`` None leaves the agent's own bound. ``timeout`` is in seconds per action.
    ``max_tokens``, ``max_cost`` (US dollars) and ``max_seconds`` bound the run, those
    ``_per_episode`` each episode. ``fail_on_error``: how many episodes may end in an error, as a
    number or a share (``"10%"``), before the run stops.
    ``out`` None means a directory under ``runs`` (see evaluation/evaluate/plan.py). ``image``, ``reward``: None
    for the dataset's and the environment's own. ``deterministic``: true, or settings of
    sandbox/determinism.py; ``clock`` is one of them. ``hashes``: every step tells its hashes,
    also where it is not deterministic. ``diffs``: every step keeps how it changed files, which
    changes no result. ``policy``: rules over actions (envs/policy), or their file.
    ``env_options``: settings of one environment's own, such as BashEnv's ``session``.
    ``runner``: where environments are, ``local`` or ``ray`` with the ``address`` of a cluster (see
    runner/ray); no result depends on it.
    """

    dataset: str
    agent: str
    model: str | None = None
    base_url: str | None = None
    max_turns: int | None = None
    parallel: int = 4
    limit: int | None = None
    tasks: tuple[str, ...] = ()
    epochs: int = 1
    shuffle: bool = False
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
    record_diffs: bool = False
    policy: str | Mapping[str, Any] | None = None
    env_options: Mapping[str, Any] = field(default_factory=dict)
    agent_options: Mapping[str, Any] = field(default_factory=dict)
    model_options: Mapping[str, Any] = field(default_factory=dict)
    max_tokens_per_episode: int | None = None
    max_cost_per_episode: float | None = None
    max_seconds_per_episode: float | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    max_seconds: float | None = None
    fail_on_error: int | str | None = None
    runner: str = "local"
    address: str | None = None

    @property
    def determinism(self) -> bool | Mapping[str, Any]:
        """What an environment is to be given as ``deterministic``."""
        if self.clock is None:
            return self.deterministic
        given = self.deterministic if isinstance(self.deterministic, Mapping) else {}
        return {**given, "clock": self.clock}


_VALUE_TYPES: dict[str, tuple[type, ...]] = {
    "max_turns": (int,), "parallel": (int,), "limit": (int,), "seed": (int,),
    "tasks": (list, tuple, str), "out": (str, Path), "timeout": (int, float),
    "env_options": (dict,), "agent_options": (dict,), "model_options": (dict,),
    "deterministic": (bool, dict), "hashes": (bool,), "record_diffs": (bool,), "policy": (str, dict),
    "epochs": (int,), "shuffle": (bool,),
    "max_tokens_per_episode": (int,), "max_cost_per_episode": (int, float),
    "max_seconds_per_episode": (int, float), "max_tokens": (int,), "max_cost": (int, float),
    "max_seconds": (int, float), "fail_on_error": (int, str),
}  # fmt: skip
"""What a setting may be where it is no text."""

_POSITIVE_INTEGERS = (
    "max_turns",
    "parallel",
    "limit",
    "epochs",
    "max_tokens_per_episode",
    "max_tokens",
)
_POSITIVE_NUMBERS = {
    "timeout": "s", "max_cost_per_episode": "US dollars", "max_seconds_per_episode": "s",
    "max_cost": "US dollars", "max_seconds": "s",
}  # fmt: skip


def make_config(values: Mapping[str, Any], source: str = "the settings") -> EvalConfig:
    """The configuration that ``values`` give; ``where`` names their source in messages.

    Raises UnknownNameError for a key that does not exist, ConfigError for a value of the wrong
    form or a missing dataset or agent.
    """
    known = [f.name for f in fields(EvalConfig)]
    for key, value in values.items():
        if key not in known:
            raise unknown_name_error(f"setting in {source}", key, known)
        kinds = _VALUE_TYPES.get(key, (str,))
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            wanted = " or ".join(k.__name__ for k in kinds)
            raise ConfigError(f"{source}: {key} = {value!r} is no {wanted}")
    for key in _POSITIVE_INTEGERS:
        if values.get(key, 1) < 1:
            raise ConfigError(f"{source}: {key} = {values[key]} has to be at least 1")
    for key, unit in _POSITIVE_NUMBERS.items():
        if not 0 < values.get(key, 1) < float("inf"):
            raise ConfigError(f"{source}: {key} = {values[key]} {unit} has to be greater than 0")
    for key in ("dataset", "agent"):
        if not values.get(key):
            raise ConfigError(f"no {key} is given; name one, such as {_EXAMPLES[key]}")
    settled = dict(values)
    tasks = values.get("tasks", ())
    settled["tasks"] = tuple(
        read_task_list(Path(tasks)) if isinstance(tasks, str) else map(str, tasks)
    )
    max_failed_episodes(values.get("fail_on_error"), 1)
    if "out" in values:
        settled["out"] = Path(values["out"])
    return EvalConfig(**settled)


_EXAMPLES = {"dataset": "starter", "agent": "--agent try-again"}


def read_task_list(path: Path) -> list[str]:
    """The tasks that a file names, one id or position a line; what follows a ``#`` is a remark.

    Raises ConfigError for a file that cannot be read or names none.
    """
    try:
        lines = path.expanduser().read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise ConfigError(f"tasks = {str(path)!r} is no file that can be read: {e}") from e
    names = [name for line in lines if (name := re.sub(r"(^|\s)#.*", "", line).strip())]
    if not names:
        raise ConfigError(f"tasks: {path} names no task; write one id or position a line")
    return names


def max_failed_episodes(setting: int | str | None, episodes: int) -> int | None:
    """How many of so many episodes may end in an error; None: any number.

    ``setting`` is a number, or a share of all episodes such as ``10%``. Raises ConfigError.
    """
    if setting is None:
        return None
    text = str(setting).strip()
    if text.isdigit():
        return int(text)
    try:
        share = float(text.removesuffix("%")) if text.endswith("%") else -1.0
    except ValueError:
        share = -1.0
    if not 0 <= share <= 100:
        raise ConfigError(f"fail_on_error = {setting!r}: write a number, or a share such as '10%'")
    return int(share * episodes / 100 + 1e-9)


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


def parse_key_values(pairs: Sequence[str]) -> dict[str, Any]:
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
