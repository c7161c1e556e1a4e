"""The directories with the packages of this checkout, and the packages themselves."""

from __future__ import annotations

import os
from pathlib import Path

import intercode
import intercode_sandbox

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = tuple(Path(str(package.__file__)).parent for package in (intercode_sandbox, intercode))
"""The directories of the packages."""
SOURCES = tuple(str(package.parent) for package in PACKAGES)
"""The directories to search for the packages."""
PYTHONPATH = os.pathsep.join(SOURCES)
