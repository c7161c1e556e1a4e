"""Migrates records of earlier schema versions to the current one.

Each line of ``trajectories.jsonl``, ``run.json`` and ``snapshot.json`` says its version under the
key ``v``; a ``run.json`` without the key has version 1. Readers migrate a record in memory when
they read it, and never rewrite the file. ``docs/records.md`` lists what each version changed.

Version 2 (this release) renamed keys and values of version 1; it holds the same facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from intercode.core.errors import DataError

SCHEMA_VERSION = 2
"""The version that this release writes."""

_RUN_KEYS = {
    "boxes": "sandboxes",
    "agent_facts": "agent_metadata",
    "model_facts": "model_metadata",
}
_RUN_VALUES = {
    ("sandboxes", "renewed"): "recycled",
    ("golds", "cached where proven"): "cached",
    ("reward", "look"): "probe",
}
_CONFIG_KEYS = {"diffs": "record_diffs"}
_OPTION_KEYS = {
    "pay": "reward_mode",
    "reuse": "recycle",
    "apart": "separate_stderr",
    "cached_golds": "use_gold_cache",
    "diffs": "record_diffs",
}
_REWARD_MODES = {"end": "final", "every-turn": "per-turn", "difference": "delta"}
_SNAPSHOT_KEYS = {
    "drawn_from": "task_seed",
    "last": "last_result",
    "potential": "previous_score",
    "left_behind": "omitted",
}
_RESULT_KEYS = {"cut": "omitted_bytes"}


def migrate_trajectory(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return one decoded line of ``trajectories.jsonl`` in the current form, without ``v``.

    Raises DataError for a version that this release does not know.
    """
    values = dict(row)
    if _pop_version(values) == 1:
        run = values.get("run")
        if isinstance(run, Mapping):
            values["run"] = _migrate_run(run)
        probed = isinstance(run, Mapping) and run.get("reward") == "look"
        if isinstance(values.get("steps"), list):
            values["steps"] = [_migrate_step(step, probed) for step in values["steps"]]
    return values


def migrate_run_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of ``run.json`` in the current form, without ``v``.

    Raises DataError for a version that this release does not know.
    """
    values = dict(metadata)
    return _migrate_run(values) if _pop_version(values, default=1) == 1 else values


def migrate_snapshot(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of ``snapshot.json`` in the current form, without ``v``.

    Raises DataError for a version that this release does not know.
    """
    snapshot = dict(values)
    if _pop_version(snapshot) == 1:
        snapshot = _renamed(snapshot, _SNAPSHOT_KEYS)
        if isinstance(snapshot.get("last_result"), Mapping):
            snapshot["last_result"] = _renamed(snapshot["last_result"], _RESULT_KEYS)
    return {"step_rewards": [], **snapshot}  # files of earlier releases lack it


def _pop_version(values: dict[str, Any], default: int | None = None) -> int:
    version = values.pop("v", default)
    if type(version) is not int or not 1 <= version <= SCHEMA_VERSION:
        raise DataError(
            f"schema version {version!r}; this release reads the versions 1 to {SCHEMA_VERSION}"
        )
    return version


def _migrate_run(run: Mapping[str, Any]) -> dict[str, Any]:
    values = _renamed(run, _RUN_KEYS)
    for (key, old), new in _RUN_VALUES.items():
        if values.get(key) == old:
            values[key] = new
    if isinstance(values.get("env_options"), Mapping):
        values["env_options"] = _migrate_options(values["env_options"])
    if isinstance(values.get("config"), Mapping):
        config = _renamed(values["config"], _CONFIG_KEYS)
        if isinstance(config.get("env_options"), Mapping):
            config["env_options"] = _migrate_options(config["env_options"])
        if config.get("reward") == "look":
            config["reward"] = "probe"
        values["config"] = config
    if isinstance(values.get("regraded_from"), Mapping):
        values["regraded_from"] = _migrate_run(values["regraded_from"])
    if isinstance(values.get("undone"), list):
        values["undone"] = [_migrate_actor(turn) for turn in values["undone"]]
    return values


def _migrate_options(options: Mapping[str, Any]) -> dict[str, Any]:
    values = _renamed(options, _OPTION_KEYS)
    mode = values.get("reward_mode")
    if isinstance(mode, str):
        values["reward_mode"] = _REWARD_MODES.get(mode, mode)
    return values


def _migrate_step(step: Any, probed: bool) -> Any:
    """``probed``: the reward of the run was ``look``, whose part has the new name of the reward."""
    values = _migrate_actor(step)
    if probed and isinstance(values, dict) and isinstance(values.get("parts"), Mapping):
        values["parts"] = _renamed(values["parts"], {"look": "probe"})
    return values


def _migrate_actor(turn: Any) -> Any:
    if not isinstance(turn, Mapping):
        return turn
    return {**turn, "actor": "human"} if turn.get("actor") == "person" else dict(turn)


def _renamed(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return ``values`` with new keys, in the same order."""
    return {names.get(key, key): value for key, value in values.items()}
