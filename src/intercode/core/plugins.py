"""What other installed packages add, by the entry points that they declare.

A package names its things under ``[project.entry-points."intercode.GROUP"]``, where GROUP is one of
environments, datasets, agents, rewards and sandboxes. Looking is done once, when a name is asked
for that is none of ours; nothing of a plugin is imported before one of its names is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Plugin:
    """A name that an installed package gives, what it stands for, and the package with its
    version."""

    name: str
    reference: str
    origin: str


@cache
def find_plugins(group: str) -> tuple[Plugin, ...]:
    """The plugins of a group, by name. Where two packages give one name, both are there, and the
    first by the package's name counts."""
    from importlib.metadata import entry_points  # only here: the package is to be imported fast

    found = []
    for entry in entry_points(group=group):
        origin = f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unnamed package"
        found.append(Plugin(entry.name, entry.value.partition("[")[0].strip(), origin))
    return tuple(sorted(found, key=lambda p: (p.name, p.origin)))
