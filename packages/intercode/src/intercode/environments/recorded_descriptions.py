"""Finds the description of an environment by its name, and of the environment of a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from intercode.core.types import EnvironmentDescription, Task, Trajectory
from intercode.core.types.descriptions import read_description
from intercode.environments import ENVIRONMENTS

RECORD_KEY = "environment_description"
"""The key of ``run.json`` under which the description of an environment of others is recorded."""


def describe_environment(name: str, recorded: object = None) -> EnvironmentDescription:
    """Return the description of a registered environment, else what a record says of it.

    A recorded language that is not the environment's own is that of a task. Imports no code that
    only a record names.
    """
    if name not in iter(ENVIRONMENTS):  # which leaves out entries whose package is missing
        return read_description(name, recorded)
    found: EnvironmentDescription = ENVIRONMENTS.load(name).description
    if not isinstance(recorded, Mapping):
        return found
    said = read_description(name, recorded)
    if said.language.name == found.language.name:
        return found
    names = {k: getattr(said.language, k) for k in ("name", "title", "tags")}
    return replace(found, language=replace(found.language, **names))


def recorded_environment(run: Mapping[str, Any]) -> str:
    """Return our name of the environment in which an episode was recorded; empty if the record does
    not say it."""
    return str(run.get("environment") or "").removeprefix("ic_")


def description_of(run: Mapping[str, Any]) -> EnvironmentDescription:
    """Return the description of the environment in which a run was played."""
    return describe_environment(recorded_environment(run), run.get(RECORD_KEY))


def stratum_of(of: Task | Trajectory, description: EnvironmentDescription) -> str | None:
    """Return what tables and samples split a task or an episode by: the first of the environment's
    strata that it has."""
    names = (getattr(of, stratum) for stratum in description.strata)
    return next((name for name in names if name is not None), None)
