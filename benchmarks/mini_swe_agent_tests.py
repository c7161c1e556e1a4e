"""Runs mini-swe-agent's own tests of its environments and agents with our environment class.

    python benchmarks/mini_swe_agent_tests.py SOURCES
    .ci/docker .venv/bin/python benchmarks/mini_swe_agent_tests.py SOURCES --docker

SOURCES is its repository at the tag of the installed version: the source distribution lacks these
tests. Our class takes the place of `local` and `bubblewrap`; bubblewrap need not be installed. With
``--docker``, mini-swe-agent's own class for Docker does, on the image that .ci/docker imports.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import minisweagent.environments.extra.bubblewrap as bubblewrap
import minisweagent.environments.local as local
import pytest
from minisweagent.environments.docker import DockerEnvironment, DockerEnvironmentConfig

from intercode.integrations.mini_swe_agent import (
    MiniSweAgentEnvironment,
    MiniSweAgentEnvironmentConfig,
)

TESTS = (
    "tests/environments/test_local.py",
    "tests/environments/extra/test_bubblewrap.py",
    "tests/agents/test_default.py",
)


class DockerConfig(DockerEnvironmentConfig):
    """The settings of mini-swe-agent's class for Docker, with an image by default."""

    image: str = "intercode-test:latest"


class Docker(DockerEnvironment):
    """mini-swe-agent's class for Docker, whose image need not be named."""

    def __init__(self, **settings: object) -> None:
        network = ["--rm", "--network", "none"]  # the daemon of .ci/docker has no other
        super().__init__(config_class=DockerConfig, run_args=network, **settings)


def main() -> int:
    """Run the tests and return pytest's exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sources", metavar="SOURCES", type=Path)
    parser.add_argument("--docker", action="store_true", help="mini-swe-agent's class for Docker")
    options = parser.parse_args()
    environment = Docker if options.docker else MiniSweAgentEnvironment
    config = DockerConfig if options.docker else MiniSweAgentEnvironmentConfig
    os.chdir(options.sources)
    for module, name in ((local, "Local"), (bubblewrap, "Bubblewrap")):
        setattr(module, f"{name}Environment", environment)
        setattr(module, f"{name}EnvironmentConfig", config)
    with tempfile.TemporaryDirectory() as programs:
        Path(programs, "bwrap").symlink_to("/bin/true")  # tests are skipped without the program
        os.environ["PATH"] += f":{programs}"
        return int(pytest.main(["-q", "-p", "no:cacheprovider", *TESTS]))


if __name__ == "__main__":
    sys.exit(main())
