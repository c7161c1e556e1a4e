"""The packages that belong to this one."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

GYM_DISTRIBUTION = "intercode-gym"
"""This one: the product."""
LAB = "intercode-lab"
"""Task families, variants, audits, contamination and validity."""


def directories_with_golds() -> list[Path]:
    """Return the directories of packages that hold golds: of this one, and of LAB where it is
    installed."""
    lab = find_spec(LAB.replace("-", "_"))
    folders = (lab.submodule_search_locations if lab else None) or ()
    return [Path(__file__).parents[1], *map(Path, folders)]
