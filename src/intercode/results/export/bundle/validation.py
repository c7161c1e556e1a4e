"""Validates the types of untrusted records."""

from __future__ import annotations

import json
import math
from typing import Any

from intercode.core.errors import DataError
from intercode.core.types import Step, Trajectory, to_jsonable


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
    texts = {"task": episode.task, "query": episode.query, "end": episode.end, "id": episode.id}
    for name, value in texts.items():
        _require(isinstance(value, str), name, value)
    _require(isinstance(episode.run, dict), "run", episode.run)
    for name, number in (("index", episode.index), ("epoch", episode.epoch)):
        _require(isinstance(number, int), name, number)
    for name in ("error", "group", "hardness", "parent"):
        text = getattr(episode, name)
        _require(text is None or isinstance(text, str), name, text)
    for step in episode.steps:
        _validate_step(step)


def _validate_step(step: Step) -> None:
    for name in ("action", "observation", "message", "thought", "actor"):
        _require(isinstance(getattr(step, name), str), name, getattr(step, name))
    for name in ("executed", "timed_out", "refused"):
        _require(isinstance(getattr(step, name), bool), name, getattr(step, name))
    reward = step.reward
    number = isinstance(reward, int | float) and not isinstance(reward, bool)
    sound = number and reward is not None and math.isfinite(reward) and reward <= 1.0 + 1e-9
    _require(reward is None or sound, "reward", reward)
    _require(step.valid is None or isinstance(step.valid, bool), "valid", step.valid)
    for name, count in to_jsonable(step.usage).items():
        _require(count is None or isinstance(count, int | float), name, count)
    for name in ("parts", "hashes", "diffs"):
        _require(isinstance(getattr(step, name), dict), name, getattr(step, name))


def _require(holds: bool, name: str, value: object) -> None:
    if not holds:
        raise DataError(f"{name} cannot be {value!r:.80}")
