"""``intercode image build``: its argument and its output."""

from __future__ import annotations

from pathlib import Path

import pytest

from intercode.cli import main
from intercode.core.errors import UsageError
from intercode_sandbox.command.build_image import image_spec, name_value_pairs


def test_what_the_argument_means(tmp_path: Path) -> None:
    assert image_spec("nl2bash") == "recipe:nl2bash"
    assert image_spec("recipe:nl2bash") == "recipe:nl2bash"
    assert image_spec(f"recipe:{tmp_path}/own.toml") == f"recipe:{tmp_path}/own.toml"
    assert image_spec(f"dockerfile:{tmp_path}/x") == f"dockerfile:{tmp_path}/x"
    assert image_spec(f"{tmp_path}/own.toml") == f"recipe:{tmp_path}/own.toml"
    assert image_spec(f"{tmp_path}/Containerfile") == f"dockerfile:{tmp_path}/Containerfile"
    with pytest.raises(UsageError, match="holds no Dockerfile"):
        image_spec(str(tmp_path))
    (tmp_path / "recipe.toml").touch()
    assert image_spec(str(tmp_path)) == f"recipe:{tmp_path}/recipe.toml"
    (tmp_path / "Dockerfile").touch()
    assert image_spec(str(tmp_path)) == f"dockerfile:{tmp_path}"
    assert name_value_pairs("--from", ["a:1=tar:/x=y"]) == {"a:1": "tar:/x=y"}
    with pytest.raises(UsageError, match="--from a: write --from NAME=VALUE"):
        name_value_pairs("--from", ["a"])


@pytest.mark.sandbox
def test_it_prints_what_image_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "Dockerfile").write_text("FROM base\nARG WHO\nRUN echo $WHO > /srv/who\n")
    chosen = ["--from", "base=host", "--build-arg", "WHO=me"]
    assert main(["image", "build", str(tmp_path), *chosen]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("built:") and "Dockerfile:3: RUN echo" in shown.err
    assert main(["image", "build", "nl2bash", *chosen]) != 0
    assert "is not a Dockerfile" in capsys.readouterr().err
    assert main(["image", "build", "nonesuch"]) != 0
    assert "unknown image recipe" in capsys.readouterr().err


def test_the_dockerfile_for_a_recipe_is_printed_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "recipe.toml").write_text('base = "host"\nsetup = "echo  a >/srv/b"\n')
    assert main(["image", "build", str(tmp_path)]) == 2
    lines = ["#!/bin/bash", "echo  a >/srv/b", "END"]
    text = "\n".join(["FROM host", "RUN --network=none <<'END'", *lines])
    assert capsys.readouterr().err.endswith(f"\n\n{text}\n")
