"""Runs mini-swe-agent's own tests of its environments and agents with our environment class.

    python benchmarks/mini_swe_agent_tests.py SOURCES

SOURCES is its repository at the tag of the installed version: the source distribution lacks these
tests. Our class takes the place of `local` and `bubblewrap`; bubblewrap need not be installed.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import minisweagent.environments.extra.bubblewrap as bubblewrap
import minisweagent.environments.local as local
import pytest

from intercode.integrations.mini_swe_agent import (
    InterCodeEnvironment,
    InterCodeEnvironmentConfig,
)

TESTS = (
    "tests/environments/test_local.py", "tests/environments/extra/test_bubblewrap.py",
    "tests/agents/test_default.py",
)  # fmt: skip


def main() -> int:
    """Run the tests and return pytest's exit status."""
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    os.chdir(sys.argv[1])
    for module, name in ((local, "Local"), (bubblewrap, "Bubblewrap")):
        setattr(module, f"{name}Environment", InterCodeEnvironment)
        setattr(module, f"{name}EnvironmentConfig", InterCodeEnvironmentConfig)
    with tempfile.TemporaryDirectory() as programs:
        Path(programs, "bwrap").symlink_to("/bin/true")  # tests are skipped without the program
        os.environ["PATH"] += f":{programs}"
        return int(pytest.main(["-q", "-p", "no:cacheprovider", *TESTS]))


if __name__ == "__main__":
    sys.exit(main())
