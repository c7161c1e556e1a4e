"""A user's recipe.toml: its keys, its errors, and the resulting image."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from intercode_sandbox import SandboxSpec, open_sandbox
from intercode_sandbox.errors import ConfigError, DataError, UsageError
from intercode_sandbox.images.build import built_images, user_recipe
from intercode_sandbox.images.build.on_demand import resolve_or_build
from intercode_sandbox.types import Image

pytestmark = pytest.mark.sandbox

TOML = """
description = "a test"
base = "host"
workdir = "/work"
setup = "setup.sh"
[files]
"/work" = "files"
"/etc/motd" = "files/note"
[env]
GREETING = "hello"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "files" / "sub").mkdir(parents=True)
    (tmp_path / "files" / "note").write_text("a note\n")
    (tmp_path / "files" / "sub" / "run").write_text("#!/bin/sh\necho ran\n")
    (tmp_path / "files" / "sub" / "run").chmod(0o750)
    (tmp_path / "setup.sh").write_text(
        "set -e\necho $GREETING in $PWD > /work/said; rm /work/note\n"
    )
    (tmp_path / "recipe.toml").write_text(TOML)
    return tmp_path


def shown(image: Image, code: str) -> str:
    with open_sandbox(SandboxSpec(image)) as sandbox:
        assert sandbox.changes() == {}
        return sandbox.run(["/bin/bash", "-c", code], cwd=image.cwd).output


def test_it_becomes_an_image(folder: Path) -> None:
    lines: list[str] = []
    image = resolve_or_build(f"recipe:{folder}/recipe.toml", lines.append)
    assert image.name == f"recipe:{folder}/recipe.toml" and image.cwd == "/work"
    assert image.env == {"GREETING": "hello"} and len(image.layers) == 3
    code = "ls; cat said; stat -c %a,%U sub/run; sub/run; cat /etc/motd; echo $GREETING"
    assert shown(image, code) == "said\nsub\nhello in /\n750,root\nran\na note\nhello\n"
    assert any("setup" in line for line in lines)
    assert (
        resolve_or_build(f"recipe:{folder}")
        == resolve_or_build(f"recipe:{folder}/recipe.toml")
        == image
    )
    short = image.digest.removeprefix("sha256:")[:16]
    assert resolve_or_build(f"built:{short}") == image
    record = next(r for r in built_images.built_images() if r.digest == image.digest)
    assert record.base == "host" and record.size > 0
    for each in [r for r in built_images.built_images() if r.digest == image.digest]:
        built_images.delete_built_image(each)
    with pytest.raises(UsageError, match=f"built:{short}: no such image"):
        resolve_or_build(f"built:{short}")


def test_only_changed_steps_are_built_again(folder: Path) -> None:
    first = resolve_or_build(f"recipe:{folder}")
    (folder / "setup.sh").write_text("echo other > /work/said\n")
    second = resolve_or_build(f"recipe:{folder}")
    assert first.layers[:2] == second.layers[:2] and first.layers[2] != second.layers[2]
    assert first.digest != second.digest
    os.utime(folder / "files" / "note")  # the digest depends on the content, not on the time
    assert resolve_or_build(f"recipe:{folder}") == second
    (folder / "files" / "note").write_text("another\n")
    assert resolve_or_build(f"recipe:{folder}").layers[0] != second.layers[0]


def test_force_runs_the_setup_again(folder: Path) -> None:
    (folder / "setup.sh").write_text("cat /proc/sys/kernel/random/uuid > /work/said\n")
    first = resolve_or_build(f"recipe:{folder}")
    output = shown(first, "cat said")
    assert shown(resolve_or_build(f"recipe:{folder}"), "cat said") == output
    with open_sandbox(SandboxSpec(first)) as sandbox:
        again = resolve_or_build(f"recipe:{folder}", force=True)
        # a running sandbox keeps its files
        assert sandbox.run(["cat", "/work/said"]).output == output
    assert again.digest != first.digest
    assert shown(again, "cat said") != output


def test_the_error_of_a_failed_setup_has_its_output(folder: Path) -> None:
    (folder / "setup.sh").write_text("echo about to fail\nexit 3\n")
    with pytest.raises(DataError, match=r"recipe\.toml: setup failed \(3\): about to fail"):
        resolve_or_build(f"recipe:{folder}")
    (folder / "setup.sh").write_text("touch /usr/x\nexit 1\n")
    with pytest.raises(DataError, match="has this machine's own programs, read-only"):
        resolve_or_build(f"recipe:{folder}")


def test_a_setup_has_a_time_limit(folder: Path) -> None:
    recipe = folder / "recipe.toml"
    recipe.write_text('base = "host"\ntimeout = 0.3\nsetup = "echo begun; sleep 60"\n')
    with pytest.raises(
        DataError, match=r"\(124\): ended after 0.3 s; it printed before that:\nbegun"
    ):
        resolve_or_build(f"recipe:{recipe}")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('bas = "host"', "unknown key of a recipe 'bas'; did you mean 'base'"),
        ("", "there is no base"),
        ("base = 1", "base = 1 is not of type str"),
        ('base = "host"\npackages = ["git"]', "packages needs a release of Debian"),
        ('base = "bookworm"\npackages = ["--x"]', "not a list of names"),
        ('base = "host"\nworkdir = "work"', "with a / in front"),
        ('base = "host"\nnetwork = "all"', "neither"),
        ('base = "host"\ntimeout = 0', "not a time"),
        ('base = "host"\n[env]\nA = 1', r"\[env\] A = 1 is not a text"),
        ('base = "host"\n[env]\n"A=B" = "c"', "'A=B' = 'c' cannot be a variable"),
        ('base = "host"\n[env]\n"" = "c"', "'' = 'c' cannot be a variable"),
        ('base = "host"\n[env]\nA = "\\u0000"', "cannot be a variable"),
        ("base = ", "is not TOML"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "recipe.toml").write_text(text)
    with pytest.raises(ConfigError, match=rf"recipe\.toml.*{why}"):
        user_recipe.read_user_recipe(tmp_path)


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no recipe .*/recipe\.toml"):
        resolve_or_build(f"recipe:{tmp_path}/recipe.toml")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('base = "host"\n[files]\n"/a" = "none"\n')
    with pytest.raises(DataError, match=r"toml: \[files\] none: there is no such file.*the right"):
        resolve_or_build(f"recipe:{recipe}")
    recipe.write_text('base = "host"\n[files]\n"/a" = "../x"\n')
    with pytest.raises(DataError, match="leads out of"):
        resolve_or_build(f"recipe:{recipe}")
    recipe.write_text('base = "host"\nsetup = "none.sh"\n')
    with pytest.raises(DataError, match="no such script"):
        resolve_or_build(f"recipe:{recipe}")
    recipe.write_text(f'base = "recipe:{recipe}"\n')
    with pytest.raises(UsageError, match="uses itself as a base"):
        resolve_or_build(f"recipe:{recipe}")
    recipe.write_text('base = "host"\n[files]\n"/usr/share/x" = "recipe.toml"\n')
    with pytest.raises(DataError, match="/usr is this machine's own"):
        resolve_or_build(f"recipe:{recipe}")
