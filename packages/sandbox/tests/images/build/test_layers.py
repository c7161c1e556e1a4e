"""Layers made in a sandbox: the authors' set-up scripts, and their Git repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from intercode.environments.base.layers import task_layer
from intercode.paper.bash.git_status import git_layer
from intercode_sandbox import SandboxSpec, images, open_sandbox
from intercode_sandbox.errors import DataError
from intercode_sandbox.types import LayerSpec

pytestmark = pytest.mark.sandbox

SCRIPT = """#!/bin/bash
rm -rf /shop/
mkdir -p /shop/till /shop/empty
echo -e 'one\\ntwo' > /shop/till/"a list.txt"
touch -m -t202001010000.00 /shop/old.txt
chmod 640 /shop/old.txt
ln -s till/"a list.txt" /shop/link
"""


@pytest.fixture
def script(tmp_path: Path) -> LayerSpec:
    path = tmp_path / "setup.sh"
    path.write_text(SCRIPT)
    return LayerSpec("script", path)


def test_a_script_becomes_a_layer(script: LayerSpec) -> None:
    image = images.resolve("host")
    layer = task_layer(script, image)
    assert task_layer(script, image) == layer
    with open_sandbox(SandboxSpec(image, (layer,))) as sandbox:
        shown = sandbox.run(["bash", "-c", "cd /shop; cat link; stat -c '%a %Y' old.txt; ls -A"])
        assert shown.output == "one\ntwo\n640 1577836800\nempty\nlink\nold.txt\ntill\n"
        assert sandbox.changes() == {}


def test_the_error_of_a_failed_script_has_its_output(tmp_path: Path) -> None:
    path = tmp_path / "bad.sh"
    path.write_text("echo about to fail\nexit 3\n")
    with pytest.raises(DataError, match=r"bad\.sh failed \(3\): 'about to fail"):
        task_layer(LayerSpec("script", path), images.resolve("host"))


def test_the_repository_sees_only_what_the_authors_do(script: LayerSpec) -> None:
    image = images.resolve("host")
    base = task_layer(script, image)
    with open_sandbox(SandboxSpec(image, (base, git_layer(image, (base,))))) as sandbox:
        sandbox.run(["bash", "-c", "echo x > /shop/new; mkdir /shop/dir /etc/d; echo > /etc/d/f"])
        sandbox.run(["bash", "-c", "echo y >> '/shop/till/a list.txt'; rm /shop/old.txt"])
        status = sandbox.run(["git", "status", "--short"]).output
        assert sorted(status.splitlines()) == [
            " D shop/old.txt",
            ' M "shop/till/a list.txt"',
            "?? shop/new",
        ]
        assert sandbox.run(["ls", "-A", "/shop"]).output.split() == ["dir", "link", "new", "till"]
