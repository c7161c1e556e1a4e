"""Sandboxes show no golds of the plug-in."""

from __future__ import annotations

import subprocess
import sys


def test_sandboxes_show_no_golds_of_the_lab() -> None:
    """Whether its modules have been imported or not."""
    code = """
import sys
from importlib.util import find_spec
from pathlib import Path
import intercode
from intercode_sandbox.hidden_files import hidden_packages
assert "intercode_lab" not in sys.modules
wanted = {Path(find_spec(name).origin).parent for name in ("intercode", "intercode_lab")}
assert wanted == set(hidden_packages()), hidden_packages()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
