"""Runs Harbor's own tests that start its environment `docker`, with our environment in its place.

    PYTHONPATH=PACKAGES:PYTEST .venv-harbor/bin/python benchmarks/harbor_tests.py SOURCES [--docker]

PACKAGES is the list of packages/*/src, with colons. SOURCES is a checkout of Harbor: its packages
on PyPI lack these tests, which have the mark `runtime`. PYTEST is a directory with pytest and
pytest-asyncio. Base images are those of the images.toml that `harbor_examples.py` writes: set
INTERCODE_CONFIG to its directory. With ``--docker``, under ``.ci/docker --network``, the tests are
run as they are; the engine needs the base images.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from harbor.environments import factory
from harbor.models.environment_type import EnvironmentType

from intercode.integrations.harbor import InterCodeEnvironment


class WithNetwork(InterCodeEnvironment):
    """Our environment with the network of this machine, as containers have one."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, network="host", **settings)


class Count:
    """A plugin of pytest that counts the tests, and those that pass."""

    passed, run = 0, 0

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Count a test."""
        if report.when == "call":
            self.run += 1
            self.passed += report.passed


def main() -> int:
    """Run the tests, print how many pass, and return pytest's exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sources", metavar="SOURCES", type=Path)
    parser.add_argument("--docker", action="store_true", help="Harbor's own environment")
    parser.add_argument("-k", default="", help="as pytest's -k")
    options = parser.parse_args()
    if not options.docker:
        entry = factory._EnvEntry(Path(__file__).stem, WithNetwork.__name__, None)
        factory._ENVIRONMENT_REGISTRY[EnvironmentType.DOCKER] = entry
    os.chdir(options.sources)
    sys.path.insert(0, "")  # the tests import each other and the examples
    count = Count()
    selected = ["-m", "runtime", "-k", options.k, "tests/integration"]
    status = pytest.main(["-p", "no:cacheprovider", "-q", *selected], [count])
    print(f"{count.passed} of {count.run} tests pass")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
