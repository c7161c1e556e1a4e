"""The task families of Capture the Flag."""

from __future__ import annotations

from intercode.datasets.families.family import Family, families_in

FAMILIES: tuple[Family, ...] = families_in()
"""Every family, in the order of the modules."""
