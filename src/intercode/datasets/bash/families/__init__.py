"""The task families of Bash."""

from __future__ import annotations

from intercode.datasets.bash.families import finding
from intercode.datasets.families.family import families_in

FAMILIES = families_in(finding)
"""Every family, in the order of the modules."""
