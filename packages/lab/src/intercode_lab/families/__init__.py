"""Task families: tasks without end, drawn from seeds (docs/task-families.md)."""

from __future__ import annotations

from intercode.core.types import Dataset
from intercode.datasets import may_be_recorded
from intercode_lab.families.family import FAMILIES
from intercode_lab.families.selection import is_recordable, select_families

__all__ = ["load"]


@may_be_recorded(lambda address: is_recordable(address, FAMILIES))
def load(address: str = "", environment: str = "bash") -> Dataset:
    """Task families draw tasks without end from seeds, in five difficulties.

    ``address``: what follows ``families:`` (see ``selection``); empty for the families of
    ``environment``. Raises UnknownNameError for an environment without families, also if it is the
    name of a module; else as ``select_families``.
    """
    if not address and environment not in FAMILIES:
        FAMILIES.load(environment)  # raises
    selection = select_families(address or environment)
    tasks, name = selection.tasks(), f"families:{address or environment}"
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
