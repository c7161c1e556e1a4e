"""The task families of Code."""

from __future__ import annotations

from intercode.datasets.code.families import looking, numbers, texts
from intercode.datasets.families.family import families_in

FAMILIES = families_in(numbers, texts, looking)
"""Every family, in the order of the modules."""
