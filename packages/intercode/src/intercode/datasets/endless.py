"""Datasets that draw another task for each episode, from its seed."""

from __future__ import annotations

from intercode.core.errors import ConfigError
from intercode.core.types import Dataset

FIRST_EPISODE_SEED = 1_000_000
"""Episodes of an endless dataset play tasks from this seed on; smaller ones are for evaluation."""


def require_fixed(dataset: Dataset) -> None:
    """Raise ConfigError if each episode of a dataset plays a task that is drawn from its seed."""
    if dataset.fixed_example:
        raise ConfigError(
            f"{dataset.name} draws another task for each episode: choose fixed ones by their "
            f"seeds, as in {dataset.fixed_example}"
        )
