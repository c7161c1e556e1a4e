"""The configuration of an evaluation, from a TOML file, from ``key=value`` pairs, or both; and the
sizes in settings."""

from __future__ import annotations

import json
import operator
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from intercode.core.errors import ConfigError
from intercode.core.types import Network
from intercode_sandbox.lines import split_lines
from intercode_sandbox.registry import unknown_name_error
from intercode_sandbox.valid_text import has_surrogates


@dataclass(frozen=True, slots=True)
class EvalConfig:
    """The configuration of an evaluation.

    ``tasks``: ids, positions or ranges of positions such as ``0-5`` (empty: all tasks). ``limit``:
    play only this many of them, from the first. ``sample``: play a random sample of this many,
    which the seed determines, stratified by hardness or group. ``epochs``: how often each task is
    played. ``seed``: the seed of the run, from which episodes derive theirs. ``shuffle``: play in
    random order, drawn from the seed. No result depends on it. ``max_turns`` None: the agent's own
    limit. ``timeout``: seconds for each action (None: the environment's default).

    ``max_tokens``, ``max_cost`` (US dollars) and ``max_seconds`` limit the run, and those with
    ``_per_episode`` each episode. ``fail_on_error``: the number of episodes that may fail before
    the run stops, or a share such as ``"10%"``.

    ``out`` None: a new directory below ``runs``. ``image``, ``reward`` None: those of the dataset
    and the environment. ``limits``: those of the sandboxes by name, such as ``memory = "2g"``.
    ``deterministic``: true, or settings of sandbox/determinism.py, of which
    ``clock`` is one. ``hashes``: record hashes of each step even if it is not deterministic.
    ``record_diffs``: record how each step changed files. No result depends on it. ``policy``:
    rules over actions, or a file of them (see docs/policies.md). ``mcp``: commands of MCP servers
    by name, whose tools the agent may call (see docs/mcp.md). ``env_options``: settings of
    this kind of environment only, such as ``session`` of BashEnv.

    ``log``: what tracks the run, such as ``wandb`` and ``otel`` (see evaluation/tracking); texts of
    tasks, models and actions are reported only with ``log_content``. No result depends on them.

    ``runner``: where environments run, ``local``, or ``ray`` with the ``address`` of a cluster. No
    result depends on it.
    """

    dataset: str
    agent: str
    model: str | None = None
    base_url: str | None = None
    max_turns: int | None = None
    parallel: int = 4
    limit: int | None = None
    sample: int | None = None
    tasks: tuple[str, ...] = ()
    epochs: int = 1
    shuffle: bool = False
    seed: int | None = None
    out: Path | None = None
    profile: str = "standard"
    image: str | None = None
    network: Network = "none"
    limits: Mapping[str, Any] = field(default_factory=dict)
    backend: str = "auto"
    timeout: float | None = None
    reward: str | None = None
    deterministic: bool | Mapping[str, Any] = False
    clock: str | None = None
    hashes: bool = False
    record_diffs: bool = False
    policy: str | Mapping[str, Any] | None = None
    mcp: Mapping[str, str] = field(default_factory=dict)
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
    log: tuple[str, ...] = ()
    log_content: bool = False
    runner: str = "local"
    address: str | None = None

    @property
    def determinism(self) -> bool | Mapping[str, Any]:
        """The setting ``deterministic`` of the environment, with ``clock``."""
        if self.clock is None:
            return self.deterministic
        given = self.deterministic if isinstance(self.deterministic, Mapping) else {}
        return {**given, "clock": self.clock}


_VALUE_TYPES: dict[str, tuple[type, ...]] = {
    "max_turns": (int,),
    "parallel": (int,),
    "limit": (int,),
    "sample": (int,),
    "seed": (int,),
    "tasks": (object, bool),
    "out": (str, Path),
    "timeout": (int, float),
    "env_options": (dict,),
    "agent_options": (dict,),
    "model_options": (dict,),
    "deterministic": (bool, dict),
    "hashes": (bool,),
    "record_diffs": (bool,),
    "policy": (str, dict),
    "mcp": (dict,),
    "limits": (dict,),
    "epochs": (int,),
    "shuffle": (bool,),
    "log": (list, tuple, str),
    "log_content": (bool,),
    "max_tokens_per_episode": (int,),
    "max_cost_per_episode": (int, float),
    "max_seconds_per_episode": (int, float),
    "max_tokens": (int,),
    "max_cost": (int, float),
    "max_seconds": (int, float),
    "fail_on_error": (int, str),
}
"""The types of settings that are not strings."""

_POSITIVE_INTEGERS = (
    "max_turns",
    "parallel",
    "limit",
    "sample",
    "epochs",
    "max_tokens_per_episode",
    "max_tokens",
)
_POSITIVE_NUMBERS = {
    "timeout": "s",
    "max_cost_per_episode": "US dollars",
    "max_seconds_per_episode": "s",
    "max_cost": "US dollars",
    "max_seconds": "s",
}


RENAMED_SETTINGS = {"sandbox": "backend"}
"""Settings that have another name than in the version before, with the new one."""


def make_config(values: Mapping[str, Any], source: str = "the settings") -> EvalConfig:
    """Return the configuration with these values. None stands for the default value.

    ``source``: where the values come from, for messages.

    Raises UnknownNameError for an unknown key, and ConfigError for an invalid value or if the
    dataset or the agent is missing.
    """
    known = [f.name for f in fields(EvalConfig)]
    for key in values:
        if key in RENAMED_SETTINGS:
            raise ConfigError(f"{source}: {key} is now {RENAMED_SETTINGS[key]}")
        if key not in known:
            raise unknown_name_error(f"setting in {source}", key, known)
    values = {key: value for key, value in values.items() if value is not None}
    for key, value in values.items():
        kinds = _VALUE_TYPES.get(key, (str,))
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            wanted = " or ".join(k.__name__ for k in kinds)
            hint = ": name it, as in package.module:NAME or file.py:NAME" if callable(value) else ""
            raise ConfigError(f"{source}: {key} = {value!r} is not of the type {wanted}{hint}")
    for key in _POSITIVE_INTEGERS:
        if values.get(key, 1) < 1:
            raise ConfigError(f"{source}: {key} = {values[key]} must be at least 1")
    for key, unit in _POSITIVE_NUMBERS.items():
        if not 0 < values.get(key, 1) < float("inf"):
            raise ConfigError(f"{source}: {key} = {values[key]} {unit} must be greater than 0")
    if values.get("seed", 0) < 0:
        raise ConfigError(f"{source}: seed = {values['seed']} must be at least 0")
    for key in ("dataset", "agent"):
        if not values.get(key):
            raise ConfigError(f"no {key} is given; name one, such as {_EXAMPLES[key]}")
    if values.get("sample") and values.get("limit"):
        raise ConfigError(f"{source}: sample and limit exclude each other: give one of them")
    settings = dict(values)
    if "tasks" in values:
        given = values["tasks"]
        named = read_task_list(Path(given)) if isinstance(given, str) else task_names(given)
        settings["tasks"] = tuple(named)
    log = values.get("log", ())
    settings["log"] = (log,) if isinstance(log, str) else tuple(map(str, log))
    max_failed_episodes(values.get("fail_on_error"), 1)
    if "out" in values:
        if "\0" in str(values["out"]) or has_surrogates(str(values["out"])):
            raise ConfigError(f"{source}: out = {values['out']!r} is not text: name a directory")
        if not str(values["out"]):
            raise ConfigError(f"{source}: out is empty: name a directory, or leave it out")
        settings["out"] = Path(values["out"])
    return EvalConfig(**settings)


_EXAMPLES = {"dataset": "starter", "agent": "--agent try-again"}


def task_names(value: object) -> tuple[str, ...]:
    """Return the ids, positions and ranges of positions that the setting ``tasks`` stands for.

    ``value`` is an id, a position, a range, a text of several with commas between them, a file
    that lists them, or an iterable of ids, positions and ranges. Raises ConfigError for another
    value, and for one that names no task.
    """
    if isinstance(value, str | Path):
        text = str(value)
        listed = not re.fullmatch(r"[\d,-]+", text) and os.path.isfile(text)  # false if too long
        if listed or isinstance(value, Path):
            return tuple(read_task_list(Path(text)))
        if text.endswith(".txt"):
            raise ConfigError(f"tasks = {text!r}: there is no such file")
        names = tuple(name for part in text.split(",") if (name := part.strip()))
    elif isinstance(value, Iterable) and not isinstance(value, bytes | Mapping | range):
        names = tuple(name for item in value for name in _task_name(item))
    else:
        names = _task_name(value)
    if not names:
        raise ConfigError(f"tasks = {value!r} names no task; leave it out to play all tasks")
    return names


def _task_name(value: object) -> tuple[str, ...]:
    """Return what one id, position or range of positions stands for."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, range):
        return tuple(name for position in value for name in _task_name(position))
    if isinstance(value, bool) or not hasattr(value, "__index__") or operator.index(value) < 0:
        raise ConfigError(
            f"tasks: {value!r} is no task; give ids, positions from 0, or ranges such as '0-5'"
        )
    return (str(operator.index(value)),)


def read_task_list(path: Path) -> list[str]:
    """Return the tasks that a file lists, one id or position on each line. ``#`` begins a comment.

    Raises ConfigError for a file that cannot be read or lists no task.
    """
    try:
        lines = split_lines(path.expanduser().read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as e:
        raise ConfigError(
            f"tasks = {str(path)!r} cannot be read: {e}; ids are a list: tasks = [{str(path)!r}]"
        ) from e
    names = [name for line in lines if (name := re.sub(r"(^|\s)#.*", "", line).strip())]
    if not names:
        raise ConfigError(f"tasks: {path} lists no task; write one id or position on each line")
    return names


def max_failed_episodes(setting: int | str | None, episodes: int) -> int | None:
    """Return how many of ``episodes`` may end in an error, or None without a limit.

    ``setting`` is a number, or a share of the episodes such as ``10%``. Raises ConfigError for any
    other value.
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


def parse_key_values(pairs: Sequence[str]) -> dict[str, Any]:
    """Return ``key=value`` texts as a dictionary, with values parsed as JSON where possible.

    Raises ConfigError for a text without ``=``.
    """
    out: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise ConfigError(f"{pair!r} is not of the form key=value")
        try:
            out[key] = json.loads(text)
        except ValueError:
            out[key] = text
    return out
