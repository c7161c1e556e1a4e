"""The task families of Bash: one module for each kind of work."""

from __future__ import annotations

from intercode_lab.families.bash import (
    archives,
    configs,
    duplicates,
    encodings,
    exploration,
    finding,
    links,
    logs,
    permissions,
    tables,
    texts,
)
from intercode_lab.families.family import families_in

FAMILIES = families_in(
    finding,
    permissions,
    texts,
    logs,
    tables,
    archives,
    links,
    duplicates,
    configs,
    encodings,
    exploration,
)
"""Every family, in the order of the modules."""
