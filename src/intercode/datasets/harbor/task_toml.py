"""The settings in a ``task.toml`` of Harbor, and those that are not supported."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError
from intercode.datasets.files import read_text

_SECTIONS = ("task", "metadata", "verifier", "agent", "solution", "environment")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_MEMORY, _STORAGE = 2 << 30, 10 << 30
_MAX_NUMBER = 1e15  # a number of bytes or larger units
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


@dataclass(frozen=True, slots=True)
class Config:
    """The supported settings of a task. Times are in seconds, sizes in bytes.

    ``agent_seconds`` is Harbor's time limit for the whole episode. ``internet`` says whether the
    task asks for a network; the caller decides whether it gets one. ``noted`` describes the
    settings that are ignored.
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


def read_config(path: Path) -> Config:
    """Return the settings in a ``task.toml``. Raises DataError that names the setting."""
    try:
        table = tomllib.loads(read_text(path))
    except (ValueError, RecursionError) as e:  # also numbers too long, and lists too deep
        raise DataError(f"{path} is not valid TOML: {e}") from e
    sections = {name: table.get(name, {}) for name in _SECTIONS}
    for name, section in sections.items():
        if not isinstance(section, dict):
            raise DataError(f"{path}: [{name}] must be a table, not {section!r}")
    section, verifier = sections["environment"], sections["verifier"]
    _reject_unsupported(path, table, section, verifier)
    metadata = sections["metadata"]
    tags = metadata.get("tags") or sections["task"].get("keywords") or []
    return Config(
        name=str(sections["task"].get("name", "")),
        agent_seconds=_seconds(path, sections["agent"], "agent"),
        verifier_seconds=_seconds(path, verifier, "verifier"),
        verifier_env=_env(path, verifier, "verifier"),
        solution_env=_env(path, sections["solution"], "solution"),
        env=_env(path, section, "environment"),
        docker_image=str(section.get("docker_image") or ""),
        workdir=str(section.get("workdir") or ""),
        memory=_size(path, section, "memory", _MEMORY),
        storage=_size(path, section, "storage", _STORAGE),
        internet=bool(
            section.get("allow_internet", section.get("network_mode") not in ("none", "no-network"))
        ),
        difficulty=_optional_text(metadata.get("difficulty")),
        category=_optional_text(metadata.get("category")),
        tags=tuple(str(tag) for tag in tags) if isinstance(tags, list) else (),
        noted=tuple(_ignored_settings(sections)),
    )


def _reject_unsupported(
    path: Path, table: Mapping[str, Any], section: Mapping[str, Any], verifier: Mapping[str, Any]
) -> None:
    """Raise DataError for unsupported settings that would change the task if they were ignored."""
    reasons = {
        "several steps": bool(table.get("steps")),
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


def _ignored_settings(sections: Mapping[str, Mapping[str, Any]]) -> list[str]:
    # these texts are part of the checksum in ``task_directory``: a new wording changes hashes
    ignored = [
        f"the {name} runs as the box's one user, not as {section['user']!r}"
        for name, section in sections.items()
        if name in ("agent", "verifier") and section.get("user")
    ]
    if sections["environment"].get("healthcheck"):
        ignored.append("the health check is not run")
    return ignored


def _seconds(path: Path, section: Mapping[str, Any], name: str) -> float:
    value = section.get("timeout_sec", 600.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e7:
        raise DataError(f"{path}: [{name}] timeout_sec = {value!r} is not a number of seconds")
    return float(value)


def _size(path: Path, section: Mapping[str, Any], name: str, default: int) -> int:
    """Return a size in bytes: ``memory_mb = 2048``, or ``memory = "2G"`` in older files."""
    in_mb, text = section.get(f"{name}_mb"), section.get(name)
    number = in_mb if isinstance(in_mb, int | float) and not isinstance(in_mb, bool) else 0
    if 0 < number < _MAX_NUMBER:
        return int(number * (1 << 20))
    match = _SIZE.fullmatch(str(text).strip()) if text is not None else None
    if match is not None and 0 < float(match[1]) < _MAX_NUMBER:
        return int(float(match[1]) * (1 << _UNITS[match[2].upper()]))
    if in_mb is None and text is None:
        return default
    raise DataError(f"{path}: {name} is {in_mb if text is None else text!r}, which is not a size")


def _env(path: Path, section: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return the environment variables of a section.

    ``${NAME}`` would be replaced by a variable of this machine and is rejected;
    ``${NAME:-value}`` becomes ``value``.
    """
    given = section.get("env", {})
    if not isinstance(given, dict):
        raise DataError(f"{path}: [{name}] env must be a table, not {given!r}")
    variables = {}
    for key, value in given.items():
        text = str(value)
        reference = re.fullmatch(r"\$\{(\w+)(?::-(.*))?\}", text)
        if reference and reference[2] is None:
            raise DataError(
                f"{path}: [{name}] env would pass this machine's variable {reference[1]} to code "
                "of the task; to allow that, write its value instead"
            )
        variables[str(key)] = reference[2] if reference else text
    return variables


def _optional_text(value: Any) -> str | None:
    return str(value) if value else None
