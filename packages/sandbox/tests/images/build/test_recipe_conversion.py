"""A recipe.toml is refused with the Dockerfile that makes its image."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from intercode_sandbox import SandboxSpec, open_sandbox
from intercode_sandbox.errors import ConfigError, UsageError
from intercode_sandbox.images.build.on_demand import resolve_or_build

RECIPE = """
description = "a shop"
base = "host"
workdir = "/work"
setup = "setup.sh"
[files]
"/work" = "files"
"/etc/motd" = "files/note"
[env]
GREETING = 'say "hello" to $HOME'
"""
PACKAGES = """
base = "bookworm"
date = "20261120"
packages = ["git", "jq"]
network = "host"
setup = "git config --system user.name Dana"
"""


def printed(folder: Path, recipe: str) -> str:
    """Return the Dockerfile in the error for a recipe."""
    (folder / "recipe.toml").write_text(recipe)
    with pytest.raises(UsageError, match="images are described by Dockerfiles") as error:
        resolve_or_build(f"recipe:{folder}")
    return error.value.verbatim


@pytest.mark.sandbox
def test_the_printed_dockerfile_makes_the_image(tmp_path: Path) -> None:
    (tmp_path / "files" / "sub").mkdir(parents=True)
    (tmp_path / "files" / "note").write_text("a note\n")
    (tmp_path / "setup.sh").write_text("set -e\necho $GREETING in $PWD > /work/said\n")
    (tmp_path / "Dockerfile").write_text(printed(tmp_path, RECIPE))
    image = resolve_or_build(f"dockerfile:{tmp_path}")
    assert (image.cwd, image.env) == ("/work", {"GREETING": 'say "hello" to $HOME'})
    with open_sandbox(SandboxSpec(image)) as sandbox:
        code = ["/bin/bash", "-c", "ls; cat said /etc/motd"]
        output = sandbox.run(code, cwd=image.cwd).output
    assert output == 'note\nsaid\nsub\nsay "hello" to $HOME in /\na note\n'


def test_packages_and_a_date_are_those_of_debian(tmp_path: Path) -> None:
    lines = printed(tmp_path, PACKAGES).splitlines()
    assert lines[0] == "FROM debian:bookworm-20261120"
    assert lines[1].endswith("apt-get install -y --no-install-recommends git jq \\")
    script = ["RUN <<'END'", "#!/bin/bash", "git config --system user.name Dana"]
    assert lines[3:] == [*script, "END"]


def test_what_is_no_recipe_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no recipe .*/recipe\.toml; .* dockerfile:PATH"):
        resolve_or_build(f"recipe:{tmp_path}/recipe.toml")
    (tmp_path / "recipe.toml").write_text("base = ")
    with pytest.raises(ConfigError, match="is not TOML"):
        resolve_or_build(f"recipe:{tmp_path}")
    (tmp_path / "recipe.toml").write_text("files = 3")
    with pytest.raises(ConfigError, match="files = 3 is not of type dict"):
        resolve_or_build(f"recipe:{tmp_path}")
    (tmp_path / "recipe.toml").write_text("packages = 'vim'")
    with pytest.raises(ConfigError, match="packages = 'vim' is not of type list"):
        resolve_or_build(f"recipe:{tmp_path}")


def test_a_setup_of_any_text_is_kept(tmp_path: Path) -> None:
    for text in ("a" * 300, "echo END\nEND\necho END1"):
        lines = printed(tmp_path, f"base = 'host'\nsetup = {json.dumps(text)}\n").splitlines()
        end = lines[1].partition("<<")[2].strip("'")
        assert lines[3 : lines.index(end)] == text.split("\n")
