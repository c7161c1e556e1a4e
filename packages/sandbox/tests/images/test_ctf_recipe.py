"""The InterCode-CTF image: one list of packages for both back ends, and links."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest

from intercode_sandbox.errors import ConfigError, DataError, UsageError
from intercode_sandbox.images import resolve_layer
from intercode_sandbox.images.recipes import mmdebstrap, packaged
from intercode_sandbox.types import Image, LayerSpec


def test_the_recipe_is_pinned() -> None:
    found = packaged.load_recipe("ctf")
    assert {"gcc", "sleuthkit", "poppler-utils", "python3-pycryptodome"} <= set(found.packages)
    assert {"libc6", "gcc-12", "python3.11"} <= dict(found.versions).keys()
    assert packaged.is_pinned(Image("recipe:ctf", f"sha256:{dict(found.digests)['amd64']}"))
    assert set(found.packages) <= dict(found.versions).keys()


def test_the_dockerfile_has_the_same_packages_and_links() -> None:
    found = packaged.load_recipe("ctf")
    folder = resources.files("intercode_sandbox.images.recipes").joinpath("data")
    text = folder.joinpath("ctf.Dockerfile").read_text("utf-8")
    listed = re.search(r"--allow-downgrades \\\n((?: {6}.*\\\n)+)", text)
    assert listed is not None
    assert listed[1].replace("\\", " ").split() == list(found.packages)
    for path, aim in found.links:
        assert f"ln -s {aim} /{path}" in text


def test_links_are_made_before_the_image_is_cleaned(tmp_path: Path) -> None:
    argv = mmdebstrap.mmdebstrap_command(
        "mmdebstrap", packaged.load_recipe("ctf"), tmp_path / "out", None, "", dated=False
    )
    (link,) = (a for a in argv if "ln -s" in a)
    assert link == '--customize-hook=ln -s Cryptodome "$1"/usr/lib/python3/dist-packages/Crypto'
    text = 'suite = "bookworm"\ndate = "20261120"\npackages = ["bash"]\nlinks = ["a"]\n'
    with pytest.raises(ConfigError, match="is not of type dict"):
        packaged.parse_recipe("mine", text)


def test_a_layer_elsewhere_than_at_the_root(tmp_path: Path) -> None:
    source, cache = tmp_path / "source", tmp_path / "cache"
    (source / "keep" / "secret").mkdir(parents=True)
    (source / "keep" / "secret" / "x").write_text("no")
    (source / "keep" / "run").write_text("yes")
    spec = LayerSpec(
        "dir", source, destination="/a/b", exclude=("secret",), executable=("keep/run",)
    )
    made = resolve_layer(spec, cache)
    found = sorted(str(p.relative_to(made.root)) for p in made.root.rglob("*"))
    assert found == ["a", "a/b", "a/b/keep", "a/b/keep/run"]
    assert (made.root / "a/b/keep/run").stat().st_mode & 0o777 == 0o755
    assert resolve_layer(spec, cache) == made
    assert resolve_layer(LayerSpec("dir", source, destination="/a/c"), cache).digest != made.digest
    (source / "link").symlink_to("keep")
    with pytest.raises(UsageError, match="is not a plain file"):
        resolve_layer(spec, cache)
    with pytest.raises(DataError, match="is outside the tree"):
        resolve_layer(LayerSpec("dir", source, destination="/../x"), cache)
