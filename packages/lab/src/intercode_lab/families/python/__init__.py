"""The task families of Python."""

from __future__ import annotations

from intercode_lab.families.family import families_in
from intercode_lab.families.python import exploration, parsing, pipelines, structures

FAMILIES = families_in(pipelines, parsing, structures, exploration)
"""Every family, in the order of the modules."""
