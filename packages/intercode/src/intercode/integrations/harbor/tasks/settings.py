"""Every setting of Harbor's ``task.toml``, and what becomes of it here (see docs/harbor.md)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from intercode.core.errors import DataError
from intercode.integrations.harbor.tasks.values import Table

DONE, INFORMATION, NAMED, REFUSED = "done", "information", "named", "refused"
_NETWORK = {"network_mode": DONE, "allowed_hosts": NAMED}
SETTINGS: dict[str, dict[str, str]] = {
    "": {
        "version": INFORMATION, "schema_version": INFORMATION, "source": INFORMATION,
        "task": INFORMATION, "metadata": INFORMATION, "agent": DONE, "verifier": DONE,
        "environment": DONE, "solution": DONE, "multi_step_reward_strategy": DONE, "steps": DONE,
        "artifacts": DONE,
    },
    "agent": {"timeout_sec": NAMED, "user": DONE, **_NETWORK},
    "verifier": {
        "timeout_sec": DONE, "env": DONE, "user": DONE, "network_mode": NAMED,
        "allowed_hosts": NAMED, "environment_mode": DONE, "environment": DONE,
        "collect": DONE, "service": REFUSED,
    },
    "environment": {
        "docker_image": DONE, "env": DONE, "workdir": DONE, "memory_mb": DONE, "memory": DONE,
        "storage_mb": DONE, "storage": DONE, "allow_internet": DONE, **_NETWORK,
        "build_timeout_sec": NAMED, "cpus": NAMED, "gpu_types": NAMED, "skills_dir": NAMED,
        "healthcheck": DONE, "os": REFUSED, "gpus": REFUSED, "tpu": REFUSED, "tpus": REFUSED,
        "mcp_servers": REFUSED,
    },
    "solution": {"env": DONE},
    "steps": {
        "name": DONE, "min_reward": DONE, "agent": DONE, "verifier": DONE, "healthcheck": DONE,
        "artifacts": DONE,
    },
    "healthcheck": dict.fromkeys(
        ("command", "interval_sec", "timeout_sec", "retries", "start_period_sec",
         "start_interval_sec"), DONE,
    ),
    "artifacts": {
        "source": DONE, "exclude": DONE, "destination": INFORMATION, "service": REFUSED,
    },
    "collect": {"command": DONE, "timeout_sec": DONE, "service": REFUSED, "user": DONE},
}  # fmt: skip
"""What becomes of each setting, by the name of its table (empty: the root).

``done``: it applies. ``information``: it has no effect in Harbor either. ``named``: it has no
effect, and the dataset's warnings name it. ``refused``: a value that would change the task is an
error; values that change nothing, such as ``gpus = 0``, are not.
"""


def named_settings(table: Table, kind: str = "", path: str = "") -> Iterator[str]:
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


def reject_unsupported(path: Path, environment: Table) -> None:
    """Raise DataError for settings of an environment that would change the task if they were
    ignored."""
    reasons = {
        f"the system {environment.get('os')!r}": (
            str(environment.get("os", "linux")).lower() != "linux"
        ),
        "GPUs": bool(environment.get("gpus")),
        "TPUs": bool(environment.get("tpu") or environment.get("tpus")),
        "MCP servers": bool(environment.get("mcp_servers")),
    }
    for what, unsupported in reasons.items():
        if unsupported:
            raise DataError(f"{path} asks for {what}, which is not supported")
