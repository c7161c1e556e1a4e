"""Task families: tasks without end, drawn from seeds (docs/task-families.md)."""

from __future__ import annotations

from intercode.core.errors import ConfigError
from intercode.core.types import Dataset
from intercode.datasets.families.family import FAMILIES
from intercode.datasets.families.selection import SCHEME, select_families

__all__ = ["SCHEME", "load", "require_fixed"]


def load(spec: str = "bash") -> Dataset:
    """Return the dataset of a specification (see ``selection``), with or without ``families:``.

    Raises as ``select_families``.
    """
    selection = select_families(spec)
    used = {family.source or family.environment for family in selection.families}
    warnings = [
        f"{plugin.origin} also adds families {plugin.name!r}, which are not used: rename its entry "
        "point in the group intercode.families"
        for plugin in FAMILIES.shadowed_plugins()
        if plugin.name in used
    ]
    return Dataset(
        f"{SCHEME}{spec.removeprefix(SCHEME)}", selection.environment, selection.tasks(),
        comparable=False, warnings=tuple(warnings),
        notes="Drawn from seeds, on the machine's own programs: for training and diagnosis.",
    )  # fmt: skip


def require_fixed(dataset: Dataset) -> None:
    """Raise ConfigError if each episode of a dataset plays a task that a family draws from its
    seed."""
    if dataset.name.startswith(SCHEME) and any(task.instantiate for task in dataset.tasks):
        name = dataset.name.partition("@")[0]
        raise ConfigError(
            f"{dataset.name} draws another task for each episode: choose fixed ones by their "
            f"seeds, as in {name}@seed=0..99"
        )
