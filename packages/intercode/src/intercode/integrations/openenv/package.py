"""Writes an environment as an OpenEnv package: the directory that ``openenv validate``, ``build``
and ``push`` take."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import intercode
from intercode.core.errors import UsageError
from intercode.core.languages import load_language
from intercode.core.scaffolds import read_templates, require_new_directory, write_templates
from intercode.core.types import Dataset
from intercode.datasets import is_dataset_file
from intercode.environments import ENVIRONMENTS
from intercode.environments.base.options import check_training, pick_dataset
from intercode.environments.recorded_descriptions import describe_environment

EPISODE_TIMEOUT = 3600.0
"""Seconds that an episode may take, as the package declares: the longest that OpenEnv allows."""


def write_package(
    directory: Path,
    environment: str,
    dataset: str,
    settings: Mapping[str, Any],
    sessions: int = 64,
    idle_timeout: float | None = 600.0,
    allow_exploitable: bool = False,
) -> list[str]:
    """Write the package into the new directory ``directory`` and return the names of its files,
    relative to it.

    ``settings`` are the environment's own; ``sessions``, ``idle_timeout`` (seconds) and
    ``allow_exploitable`` are those of ``build_app``. Raises UsageError if the directory exists, and
    for a dataset that is a local file, which other machines lack.
    """
    check_training(settings, allow_exploitable)
    require_new_directory(directory)
    if is_dataset_file(dataset) or dataset.startswith("harbor:") or Path(dataset).exists():
        raise UsageError(
            f"{dataset} is on this machine: a package needs a dataset that can be fetched, or "
            "one of a plugin (`intercode new --plugin`)"
        )
    values = _template_values(environment, dataset, settings) | {
        "sessions": str(sessions),
        "idle_timeout": repr(idle_timeout),
        "allow_exploitable": repr(allow_exploitable),
    }
    return write_templates(
        directory, read_templates("intercode.integrations.openenv", "template"), values
    )


def _template_values(environment: str, dataset: str, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of the templates' placeholders."""
    selected = pick_dataset(dataset, environment)
    stem = "intercode_" + re.sub(r"\W+", "_", environment.lower()).strip("_")
    return {
        "module": f"{stem}_env",
        "dist": f"{stem}_env".replace("_", "-"),
        "class": "".join(part.capitalize() for part in stem.split("_")),
        "title": f"InterCode: {environment}, {selected.name}",
        "version": intercode.__version__,
        "environment": environment,
        "dataset": dataset,
        "split": selected.name,
        "tasks": str(len(selected.tasks)),
        "settings": repr(dict(settings)),
        "seconds": str(EPISODE_TIMEOUT),
        "lowest": "-1.0" if settings.get("reward_mode") == "delta" else "0.0",
        "validation_action": describe_environment(environment).example_action or "submit",
        "install": _installation(environment, selected),
    }


def _installation(environment: str, dataset: Dataset) -> str:
    """Return the lines of the Dockerfile that install the languages of a dataset's tasks."""
    payload = ENVIRONMENTS.load(environment).payload_type
    names = {getattr(payload.of(task), "language", "") for task in dataset.tasks}
    packages = {p for name in filter(None, names) for p in load_language(name).packages}
    if not packages:
        return ""
    return (
        "RUN apt-get update && apt-get install -y --no-install-recommends "
        f"{' '.join(sorted(packages))} && rm -rf /var/lib/apt/lists/*\n"
    )
