"""Runs Python in a Docker container that sees this package and what it needs, read-only."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig

import pytest

from support import requirements
from support.sources import SOURCES

IMAGE = os.environ.get("INTERCODE_TEST_CONTAINER", "intercode-test:latest")
_SECONDS = 120
_HOW = "start one with `.ci/docker COMMAND`"


def require_docker() -> None:
    """Skip the test, with the reason, if no daemon answers or it lacks a suitable image."""
    requirements.require("docker")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = in_container([], "import sys; print('%d.%d' % sys.version_info[:2])")
    if found.stdout.strip() != version:
        pytest.skip(
            f"needs an image {IMAGE} with Python {version}, as the one that runs the tests: {_HOW}"
            f" ({found.stdout.strip() or found.stderr.strip()[-200:]})"
        )


def in_container(options: list[str], code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh container started with these options of `docker run`."""
    shown = {
        f"/opt/packages/{n}": path
        for n, path in enumerate([*SOURCES, sysconfig.get_path("purelib")])
    }
    mounts = [f"--volume={source}:{target}:ro" for target, source in shown.items()]
    return _docker(
        "run",
        "--rm",
        "--network=none",
        *mounts,
        f"--env=PYTHONPATH={':'.join(shown)}",
        "--env=PYTHONDONTWRITEBYTECODE=1",
        *options,
        IMAGE,
        "python3",
        "-c",
        code,
    )


def _docker(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", *arguments], capture_output=True, text=True, timeout=_SECONDS, check=False
    )
