"""The directories with the packages of this checkout, as far as they are installed."""

from __future__ import annotations

import os
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

_DISTRIBUTIONS = {
    "intercode_sandbox": "intercode-sandbox",
    "intercode_sql": "intercode-sql",
    "intercode": "intercode-gym",
    "intercode_lab": "intercode-lab",
}
_SPECS = map(find_spec, _DISTRIBUTIONS)
PACKAGES = tuple(Path(spec.origin).parent for spec in _SPECS if spec and spec.origin)
"""The directories of the packages."""
SOURCES = tuple(str(package.parent) for package in PACKAGES)
"""The directories to search for the packages."""
PYTHONPATH = os.pathsep.join(SOURCES)


def write_metadata(folder: Path) -> Path:
    """Write what pip would install beside the packages, for an interpreter that finds them by
    PYTHONPATH: without it, their entry points have no effect there. Return the directory to add."""
    for package in PACKAGES:
        installed = distribution(_DISTRIBUTIONS[package.name])
        stem = installed.name.replace("-", "_")
        info = folder / f"{stem}-{installed.version}.dist-info"
        info.mkdir(parents=True)
        for name in ("METADATA", "entry_points.txt"):
            info.joinpath(name).write_text(installed.read_text(name) or "")
    return folder
