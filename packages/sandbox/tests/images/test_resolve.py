"""Specifications of images and layers, and the location of their trees."""

from __future__ import annotations

import os
import stat
import tarfile
from pathlib import Path

import pytest

from intercode_sandbox.errors import UnknownNameError, UsageError
from intercode_sandbox.images import full_spec, resolve, resolve_layer
from intercode_sandbox.images.build.on_demand import resolve_or_build
from intercode_sandbox.images.recipes import packaged
from intercode_sandbox.platforms.paths import sandbox_uid
from intercode_sandbox.types import LayerSpec


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "file").write_text("text")
    (root / "sub" / "file").chmod(0o4750)
    os.link(root / "sub" / "file", root / "hard")
    (root / "link").symlink_to("/nowhere")
    os.utime(root / "sub", ns=(5, 1_234_567_891))
    return root


@pytest.fixture
def archive(tree: Path, tmp_path: Path) -> Path:
    path = tmp_path / "tree.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(tree, ".")
    return path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_tar(archive: Path, cache: Path) -> None:
    image = resolve(f"tar:{archive}", cache)
    assert image.root is not None and image.root.parent == cache / "layers"
    assert (image.root / "sub" / "file").read_text() == "text"
    assert image.name == f"tar:{archive}" and len(image.digest) == len("sha256:") + 64
    assert {p.lstat().st_uid for p in image.root.rglob("*")} == {sandbox_uid()}
    assert resolve(f"tar:{archive}", cache) == image
    as_layer = resolve_layer(LayerSpec("tar", archive), cache)
    assert (as_layer.root, as_layer.digest) == (image.root, image.digest)


def test_a_directory_that_will_not_do_as_it_is_gets_copied_once(tree: Path, cache: Path) -> None:
    made = resolve_layer(LayerSpec("dir", tree), cache)
    assert made.root.parent == cache / "layers"
    copied = made.root / "sub" / "file"
    assert stat.S_IMODE(copied.stat().st_mode) == 0o750
    assert copied.samefile(made.root / "hard")
    assert os.readlink(made.root / "link") == "/nowhere"
    assert (made.root / "sub").stat().st_mtime_ns == 1_234_567_891
    assert {p.lstat().st_uid for p in made.root.rglob("*")} == {sandbox_uid()}
    assert resolve_layer(LayerSpec("dir", tree), cache) == made
    (tree / "more").touch()
    assert resolve_layer(LayerSpec("dir", tree), cache).digest != made.digest


def test_a_directory_of_the_sandbox_is_used_where_it_lies(tree: Path, cache: Path) -> None:
    mine = resolve_layer(LayerSpec("dir", tree), cache).root
    image = resolve(f"dir:{mine}", cache)
    assert image.root == mine
    assert resolve(f"dir:{mine}", cache).digest == image.digest
    (mine / "sub" / "file").chmod(0o700)
    assert resolve(f"dir:{mine}", cache).digest != image.digest


def test_host_and_recipes(cache: Path, archive: Path) -> None:
    host = resolve("host", cache)
    assert host.root is None and host.digest == resolve("host", cache).digest
    with pytest.raises(UsageError, match="intercode-sandbox image build nl2bash"):
        resolve("recipe:nl2bash", cache)
    with pytest.raises(UnknownNameError, match="did you mean 'nl2bash'"):
        resolve("recipe:nl2bas", cache)
    built = packaged.built_path("nl2bash", cache)
    built.parent.mkdir(parents=True)
    built.write_bytes(archive.read_bytes())
    image = resolve("recipe:nl2bash", cache)
    assert image.name == "recipe:nl2bash" and not packaged.is_pinned(image)
    assert image.digest == resolve(f"tar:{archive}", cache).digest


def test_files_that_are_not_images(tree: Path, archive: Path, cache: Path) -> None:
    for spec, message in [
        ("debian:12", "host, dir:/path, tar:/path.tar, recipe:NAME, docker-archive:"),
        ("", "'' is not an image; write host"),
        ("hots", "did you mean 'host'"),
        ("recpie:python", "did you mean 'recipe'"),
        ("dockerfile:", "is not an image"),
        ("python:3.12", "did you mean docker.io/library/python:3.12"),
        ("tar:", "is not an image; what follows tar: is missing"),
        ("dir:2026/absent", "there is no directory"),
        ("docker.io/library/Debian", "is not a reference to an image in a registry"),
        (str(tree), f"did you mean dir:{tree}"),
        (str(archive), f"did you mean tar:{archive}"),
        (f"tar:{tree}", f"there is no file {tree}"),
        (f"dir:{archive}", f"there is no directory {archive}"),
    ]:
        with pytest.raises(UsageError, match=message):
            resolve(spec, cache)
    with pytest.raises(UsageError, match="builders"):
        resolve_layer(LayerSpec("script", archive), cache)
    with pytest.raises(UsageError, match="there is no file"):
        resolve_layer(LayerSpec("tar", tree / "absent.tar"), cache)


@pytest.mark.parametrize("name", ["docker.io/library/a:1", "localhost:5000/a", "localhost/a"])
def test_a_name_with_the_host_of_a_registry_is_an_image_there(name: str) -> None:
    assert full_spec(name) == full_spec(f"registry:{name}") == f"registry:{name}"


@pytest.mark.parametrize(
    "spec", ["host", "dir:/a.b/c", "dir:2026/a", "recipe:python", "./a.b/c", "oci:a.b/c:tag"]
)
def test_other_specifications_are_no_names_in_a_registry(spec: str) -> None:
    assert full_spec(spec) == spec


@pytest.mark.parametrize("kind", ["", "dir:", "tar:", "oci:", "docker-archive:", "dockerfile:"])
def test_a_name_that_no_file_can_have_is_named(kind: str) -> None:
    with pytest.raises(UsageError, match=f"there is no image '{kind}x.*': File name too long"):
        resolve_or_build(f"{kind}{'x' * 5000}")
    with pytest.raises(UsageError, match=r"there is no|is not an image"):
        resolve_or_build(f"{kind}/a\0b")


def test_the_task_sets_file_systems(data_dir: Path, cache: Path) -> None:
    tars = sorted(data_dir.rglob("fs_?.tar"))
    if not tars:
        pytest.skip("no fs_*.tar in the data: they come with the founders' data only")
    for path in tars:
        made = resolve_layer(LayerSpec("tar", path), cache)
        with tarfile.open(path) as tar:
            members = tar.getmembers()
        for member in members:
            found = (made.root / member.name).lstat()
            assert stat.S_IMODE(found.st_mode) == member.mode | (0o700 if member.isdir() else 0)
            assert int(found.st_mtime) == int(member.mtime)
            assert found.st_size == member.size or not member.isreg()
