"""Images of a Debian release, from the machine's own archives."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from intercode_sandbox import Sandbox, SandboxSpec, open_sandbox
from intercode_sandbox.images.build.on_demand import resolve_or_build
from intercode_sandbox.types import Image

pytestmark = [
    pytest.mark.slow,
    pytest.mark.network,
    pytest.mark.sandbox,
    pytest.mark.skipif(
        os.environ.get("INTERCODE_TEST_BUILD") != "1",
        reason="set INTERCODE_TEST_BUILD=1 to build small images from the machine's own archives",
    ),
]


def shown(image: Image, code: str) -> str:
    with open_sandbox(SandboxSpec(image)) as sandbox:
        return sandbox.run(["/bin/bash", "-c", code], cwd=image.cwd).output


def test_a_command_installs_packages(tmp_path: Path) -> None:
    """As in Docker's image of Debian, and also where root is the only user."""
    (tmp_path / "Dockerfile").write_text("FROM debian:bookworm\n")
    with Sandbox(f"dockerfile:{tmp_path}", network="host") as sandbox:
        install = "apt-get install -qq --no-install-recommends cron"
        result = sandbox.run(f"apt-get update -qq && {install}", timeout=300)
        assert result.ok, result.output
        assert sandbox.run("command -v crontab").stdout == "/usr/bin/crontab\n"


def test_a_dockerfile_that_installs_packages(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(
        "FROM debian:bookworm-slim\n"
        "RUN apt-get update && apt-get install -y --no-install-recommends jq cron \\\n"
        "  && rm -rf /var/lib/apt/lists/*\n"
        "WORKDIR /work\n"
        "RUN echo '{\"a\": 7}' > f.json\n"
    )
    image = resolve_or_build(f"dockerfile:{tmp_path}")
    assert resolve_or_build(f"dockerfile:{tmp_path}") == image
    code = (
        "jq .a f.json; dpkg-query -W -f '${Status}\\n' cron; stat -c %U:%a /var/spool/cron/crontabs"
    )
    assert shown(image, code) == "7\ninstall ok installed\nroot:1730\n"
    assert (image.layers[0].root / "etc" / "apt" / "sources.list").exists() is False
