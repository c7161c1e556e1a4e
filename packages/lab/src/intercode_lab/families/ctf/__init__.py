"""The task families of Capture the Flag."""

from __future__ import annotations

from intercode_lab.families.ctf import ciphers, forensics
from intercode_lab.families.family import families_in

FAMILIES = families_in(ciphers, forensics)
"""Every family, in the order of the modules."""
