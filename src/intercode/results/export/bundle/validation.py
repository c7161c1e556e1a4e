"""Validates the types of untrusted records."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from intercode.core.errors import DataError
from intercode.core.types import Step, Trajectory, to_jsonable

_EPISODE_TYPES = {
    **dict.fromkeys(("task", "query", "end", "id"), str),
    "run": dict,
    **dict.fromkeys(("index", "epoch"), int),
    **dict.fromkeys(("error", "group", "hardness", "parent"), str | None),
}
_STEP_TYPES = {
    **dict.fromkeys(("action", "observation", "message", "thought", "actor"), str),
    **dict.fromkeys(("executed", "timed_out", "refused"), bool),
    "valid": bool | None,
    **dict.fromkeys(("parts", "hashes", "diffs"), dict),
}


def parse_object(content: bytes, where: str) -> dict[str, Any]:
    """Return the object in a JSON text. Raises DataError for anything else."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as e:
        raise DataError(f"{where}: invalid JSON ({e})") from e
    if not isinstance(value, dict):
        raise DataError(f"{where}: an object is expected, not {type(value).__name__}")
    return value


def validate_types(episode: Trajectory) -> None:
    """Raise DataError if a value of the episode does not have the type that the program relies
    on."""
    _require_types(episode, _EPISODE_TYPES)
    for step in episode.steps:
        _validate_step(step)


def _validate_step(step: Step) -> None:
    _require_types(step, _STEP_TYPES)
    reward = step.reward
    number = isinstance(reward, int | float) and not isinstance(reward, bool)
    sound = number and reward is not None and math.isfinite(reward) and reward <= 1.0 + 1e-9
    _require(reward is None or sound, "reward", reward)
    for name, count in to_jsonable(step.usage).items():
        _require(count is None or isinstance(count, int | float), name, count)


def _require_types(record: Trajectory | Step, types: Mapping[str, Any]) -> None:
    for name, kind in types.items():
        _require(isinstance(getattr(record, name), kind), name, getattr(record, name))


def _require(holds: bool, name: str, value: object) -> None:
    if not holds:
        raise DataError(f"{name} cannot be {value!r:.80}")
