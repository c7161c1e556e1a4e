"""Task families: tasks without end, drawn from seeds (docs/task-families.md)."""

from __future__ import annotations

from intercode.core.types import Dataset
from intercode_lab.families.family import FAMILIES
from intercode_lab.families.selection import SCHEME, select_families

__all__ = ["SCHEME", "load", "load_environment"]


def load(spec: str = "bash") -> Dataset:
    """Return the dataset of a specification (see ``selection``), with or without ``families:``.

    Raises as ``select_families``.
    """
    selection = select_families(spec)
    tasks, name = selection.tasks(), f"{SCHEME}{spec.removeprefix(SCHEME)}"
    used = {family.source or family.environment for family in selection.families}
    warnings = [
        f"{plugin.origin} also adds families {plugin.name!r}, which are not used: rename its entry "
        "point in the group intercode.families"
        for plugin in FAMILIES.shadowed_plugins()
        if plugin.name in used
    ]
    endless = any(task.instantiate for task in tasks)
    return Dataset(
        name,
        selection.environment,
        tasks,
        comparable=False,
        notes="Drawn from seeds, on the machine's own programs: for training and diagnosis.",
        warnings=tuple(warnings),
        fixed_example=f"{name.partition('@')[0]}@seed=0..99" if endless else "",
    )


def load_environment(environment: str = "bash") -> Dataset:
    """Task families draw tasks without end from seeds, in five difficulties.

    These are the families of one environment. Raises UnknownNameError for one without families,
    also if it is the name of a module.
    """
    if environment not in FAMILIES:
        FAMILIES.load(environment)  # raises
    return load(environment)
