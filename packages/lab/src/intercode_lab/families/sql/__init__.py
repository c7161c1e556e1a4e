"""The task families of SQL."""

from __future__ import annotations

from intercode_lab.families.family import families_in
from intercode_lab.families.sql import (
    exploration,
    grouping,
    joining,
    nesting,
    selecting,
    sets,
    windows,
    writing,
)

FAMILIES = families_in(selecting, joining, grouping, nesting, sets, windows, writing, exploration)
"""Every family, in the order of the modules."""
