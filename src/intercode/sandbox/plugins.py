"""Finds plugins: environments, datasets and so on that other installed packages add.

A package declares names under ``[project.entry-points."intercode.GROUP"]``, where GROUP is
environments, datasets, agents, rewards, families, languages or sandboxes. A group is searched once,
when a name is requested that is not built in. A plugin is imported when one of its names is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Plugin:
    """A name that an installed package adds.

    ``reference``: the module, or ``module:attribute``, that the name stands for. ``origin``: the
    package and its version.
    """

    name: str
    reference: str
    origin: str


@cache
def find_plugins(group: str) -> tuple[Plugin, ...]:
    """Return the plugins of a group such as ``intercode.agents``, sorted by name.

    If two packages add the same name, both are returned, ordered by package name. ``Registry``
    uses the first one.
    """
    from importlib.metadata import entry_points  # slow to import

    plugins = []
    for entry in entry_points(group=group):
        origin = f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unnamed package"
        plugins.append(Plugin(entry.name, entry.value.partition("[")[0].strip(), origin))
    return tuple(sorted(plugins, key=lambda p: (p.name, p.origin)))
