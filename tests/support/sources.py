"""The directories with the packages of this checkout, as far as they are installed."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

_SPECS = (find_spec(name) for name in ("intercode_sandbox", "intercode"))
PACKAGES = tuple(Path(spec.origin).parent for spec in _SPECS if spec and spec.origin)
"""The directories of the packages."""
SOURCES = tuple(str(package.parent) for package in PACKAGES)
"""The directories to search for the packages."""
PYTHONPATH = os.pathsep.join(SOURCES)
