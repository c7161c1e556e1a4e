"""The task families of Code."""

from __future__ import annotations

from intercode.datasets.code.families import exploration, numbers, texts
from intercode.datasets.families.family import families_in

FAMILIES = families_in(numbers, texts, exploration)
"""Every family, in the order of the modules."""
