"""Finds plugins: environments, datasets and so on that other installed packages add.

A package declares names under ``[project.entry-points."intercode.GROUP"]``; docs/new-tasks.md
lists the groups. The installed packages are searched once, when a name is requested that is not
built in. A plugin is imported when one of its names is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True, slots=True)
class Plugin:
    """A name that an installed package adds.

    ``reference``: the module, or ``module:attribute``, that the name stands for. ``origin``: the
    package and its version.
    """

    name: str
    reference: str
    origin: str

    @property
    def package(self) -> str:
        """The name of the package."""
        return self.origin.partition(" ")[0]


@cache
def find_plugins(group: str) -> tuple[Plugin, ...]:
    """Return the plugins of a group such as ``intercode.agents``, sorted by name.

    If two packages add the same name, both are returned, ordered by package name. ``Registry``
    uses the first one.
    """
    plugins = []
    for entry in _entry_points().select(group=group):
        origin = f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unnamed package"
        plugins.append(Plugin(entry.name, entry.value.partition("[")[0].strip(), origin))
    return tuple(sorted(plugins, key=lambda p: (p.name, p.origin)))


@cache
def _entry_points() -> Any:  # its class depends on the version of Python
    """Return the entry points of all installed packages, whose files are read once."""
    from importlib.metadata import entry_points  # slow to import

    return entry_points()
