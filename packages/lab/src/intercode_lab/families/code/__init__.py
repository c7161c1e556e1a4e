"""The task families of Code."""

from __future__ import annotations

from intercode_lab.families.code import digits, exploration, numbers, records, texts
from intercode_lab.families.family import families_in

FAMILIES = families_in(digits, numbers, texts, records, exploration)
"""Every family, in the order of the modules."""
