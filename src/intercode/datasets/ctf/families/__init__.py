"""The task families of Capture the Flag."""

from __future__ import annotations

from intercode.datasets.ctf.families import ciphers, forensics
from intercode.datasets.families.family import families_in

FAMILIES = families_in(ciphers, forensics)
"""Every family, in the order of the modules."""
