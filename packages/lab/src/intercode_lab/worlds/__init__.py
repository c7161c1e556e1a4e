"""Worlds: several goals in a state with documents and traps, from seeds (docs/task-families.md).

A program in the state that the probe runs could print readings of its own. So a probe runs none
but ``git`` and ``python3`` of the image, and reads regular files of at most 16 MiB below the
directory, so that no pipe, link or device holds it up. Git gets a copy of the objects, branches and
tags alone, without settings, hooks, attributes, grafts and replacements, and a history counts as
rewritten if ``git fsck`` finds a fault. SQLite gets a copy of the database.
"""

from __future__ import annotations

from intercode.core.errors import UnknownNameError, UsageError
from intercode.core.types import Dataset
from intercode.datasets import may_be_recorded
from intercode_lab.families.family import Family, load_families
from intercode_lab.families.selection import FamilySelection, is_recordable, select_families
from intercode_lab.worlds.world import WorldKind

__all__ = ["SCHEME", "load", "selection_of"]

SCHEME = "worlds:"
_KINDS = "intercode_lab.worlds.kinds"
_FORM = f"{SCHEME}bash/KIND[difficulty=1..5]@seed=0..99"


@may_be_recorded(lambda address: is_recordable(address, ("bash",)))
def load(address: str = "bash") -> Dataset:
    """Worlds have several goals, documents and traps, and are drawn from seeds.

    ``address`` has the form of one of families: ``bash/KIND[difficulty=5]@seed=0..9``, or
    ``./FILE.py`` for kinds of your own. Raises UsageError for what has no worlds of Bash; else as
    ``select_families``.
    """
    selection = selection_of(f"{SCHEME}{address}")
    tasks, name = selection.tasks(), f"{SCHEME}{address}"
    endless = any(task.instantiate for task in tasks)
    return Dataset(
        name,
        "bash",
        tasks,
        comparable=False,
        notes="Worlds with several goals, drawn from seeds, on the machine's own programs.",
        programs=("python3", "git"),
        reward="worlds",
        fixed_example=f"{name.partition('@')[0]}@seed=0..99" if endless else "",
    )


def selection_of(spec: str) -> FamilySelection:
    """Return the kinds that a specification selects. Raises as ``load``."""
    return select_families(spec, _load_kinds, "kind", _FORM)


def _load_kinds(source: str) -> tuple[Family, ...]:
    try:
        kinds = load_families(_KINDS if source == "bash" else source, "@kind(PLAYER, SHALLOW)")
    except UnknownNameError:
        kinds = ()
    if kinds and all(isinstance(each, WorldKind) for each in kinds):
        return kinds
    raise UsageError(
        f"{SCHEME}{source} has no worlds, which are of Bash: write {_FORM}, or for kinds of your "
        f"own {SCHEME}./FILE.py"
    )
