"""The task families of Python."""

from __future__ import annotations

from intercode.datasets.families.family import families_in
from intercode.datasets.python.families import looking, parsing, pipelines, structures

FAMILIES = families_in(pipelines, parsing, structures, looking)
"""Every family, in the order of the modules."""
