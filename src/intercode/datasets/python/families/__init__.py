"""The task families of Python."""

from __future__ import annotations

from intercode.datasets.families.family import families_in
from intercode.datasets.python.families import exploration, parsing, pipelines, structures

FAMILIES = families_in(pipelines, parsing, structures, exploration)
"""Every family, in the order of the modules."""
