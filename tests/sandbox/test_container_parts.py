"""What containers are made of, without an engine: archives, upper layers, owners, faults."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from intercode.core.errors import SandboxError, SandboxUnavailableError
from intercode.core.paths import sandbox_uid
from intercode.core.types import Image
from intercode.sandbox.container import engine, image_import, orphans, upper_layer
from intercode.sandbox.container import start as starting
from intercode.sandbox.container.container_spec import container_spec
from intercode.sandbox.contract import SandboxSpec

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY


@pytest.fixture(scope="module", autouse=True)
def supervisor() -> None:
    """No box is made here: the tests need not run with both kinds of supervisor."""


# ----------------------------------------------------------------------------- layers
def tree(root: Path) -> Path:
    (root / "d" / "inner").mkdir(parents=True)
    (root / "d" / "file").write_bytes(b"content")
    (root / "d" / "same").hardlink_to(root / "d" / "file")
    (root / "d" / "inner" / "link").symlink_to("../file")
    os.mknod(root / "d" / "gone", stat.S_IFCHR, 0)
    os.setxattr(root / "d" / "inner", "user.overlay.opaque", b"y")
    os.mkfifo(root / "pipe")
    (root / "d" / "file").chmod(0o4751)
    os.utime(root / "d" / "file", ns=(1_700_000_000_123_456_789,) * 2)
    return root


def layer(root: Path) -> bytes:
    out = io.BytesIO()
    image_import.write_layer(out, root)
    return out.getvalue()


def test_no_link_of_an_image_leads_to_files_of_this_machine(tmp_path: Path) -> None:
    """Names of users are read out of the image, here."""
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "passwd").write_text("root:x:0:0:secret:/:/bin/sh\n")
    image = tmp_path / "image"
    image.mkdir()
    (image / "etc").symlink_to(tmp_path / "host")
    made = container_spec(SandboxSpec(Image("evil", "sha256:0", image)), "docker")
    held = b"".join(p.read_bytes() for t in made.trees[:2] for p in t.path.rglob("*")
                    if p.is_file() and not p.is_symlink())  # fmt: skip
    assert b"secret" not in held


def test_what_a_killed_start_left_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path))
    home = tmp_path / "containers" / "starting"
    for name in ("old", "new"):
        (home / name).mkdir(parents=True)
        (home / name / "supervisor").write_text("x")
    os.utime(home / "old", (1, 1))
    starting.remove_stale_directories()
    assert [p.name for p in home.iterdir()] == ["new"]


def test_a_tree_becomes_a_layer_of_the_boxes_id(tmp_path: Path) -> None:
    data = layer(tree(tmp_path / "t"))
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        entries = {entry.name: entry for entry in archive}
    assert sorted(entries) == [
        "d", "d/.wh.gone", "d/file", "d/inner", "d/inner/.wh..wh..opq", "d/inner/link", "d/same",
        "pipe",
    ]  # fmt: skip
    assert {(e.uid, e.gid) for e in entries.values()} == {(sandbox_uid(), sandbox_uid())}
    assert (entries["d/file"].size, entries["d/file"].mode) == (7, 0o4751)
    assert entries["d/file"].pax_headers["mtime"] == "1700000000.123456789"
    assert entries["d/same"].islnk() and entries["d/same"].linkname == "d/file"
    assert entries["d/inner/link"].linkname == "../file" and entries["pipe"].isfifo()


def test_the_same_tree_gives_the_same_bytes(tmp_path: Path) -> None:
    root = tree(tmp_path / "t")
    assert layer(root) == layer(root)
    (root / "d" / "file").write_bytes(b"other  ")
    assert layer(root) != (before := layer(tree(tmp_path / "u"))) and before


# --------------------------------------------------------------------- upper layers
def test_files_of_a_box_become_an_upper_layer_and_its_paths_again(tmp_path: Path) -> None:
    below, box, upper = (tmp_path / name for name in ("below", "box", "upper"))
    for root in (below, box):
        (root / "etc" / "deep").mkdir(parents=True)
    (below / "etc" / "removed").write_text("old")
    (box / "etc").chmod(0o750)
    (box / "etc" / "deep" / "new").write_text("new")
    (box / "etc" / "away").symlink_to("/etc/passwd")
    os.utime(box / "etc" / "deep", ns=(5, 7))
    paths = ["/etc/away", "/etc/deep", "/etc/deep/new", "/etc/removed"]
    upper.mkdir()
    root, target = os.open(box, DIRECTORY), os.open(upper, DIRECTORY)
    upper_layer.write_upper_layer(target, root, paths)
    assert (upper / "etc" / "deep" / "new").read_text() == "new"
    assert os.readlink(upper / "etc" / "away") == "/etc/passwd"
    gone = os.stat(upper / "etc" / "removed")
    assert stat.S_ISCHR(gone.st_mode) and gone.st_rdev == 0
    assert stat.S_IMODE(os.stat(upper / "etc").st_mode) == 0o750
    assert os.stat(upper / "etc" / "deep").st_mtime_ns == 7
    assert upper_layer.list_changed_paths(target, [str(below)]) == ["/etc", *paths]
    os.close(root)
    os.close(target)


def test_an_opaque_directory_hides_what_lies_below(tmp_path: Path) -> None:
    below, upper = tmp_path / "below", tmp_path / "upper"
    for root, name in ((below, "old"), (upper, "new")):
        (root / "d").mkdir(parents=True)
        (root / "d" / name).write_text("")
    os.setxattr(upper / "d", "user.overlay.opaque", b"y")
    at = os.open(upper, DIRECTORY)
    assert upper_layer.list_changed_paths(at, [str(below)]) == ["/d", "/d/old", "/d/new"]
    os.close(at)


def test_no_link_of_a_box_leads_out_of_it(tmp_path: Path) -> None:
    outside, box, upper = (tmp_path / name for name in ("outside", "box", "upper"))
    for directory in (outside, box, upper):
        directory.mkdir()
    (outside / "secret").write_text("secret")
    (box / "d").symlink_to(outside)
    root, target = os.open(box, DIRECTORY), os.open(upper, DIRECTORY)
    upper_layer.write_upper_layer(target, root, ["/d/secret"])
    assert stat.S_ISCHR(os.lstat(upper / "d" / "secret").st_mode)
    os.close(root)
    os.close(target)


# ------------------------------------------------------------------------------ owners
def test_only_an_owner_of_this_machine_that_has_ended_is_gone() -> None:
    me = orphans.current_owner()
    assert not orphans.has_owner_ended(me)
    pid, start, boot, space = me.split(".")
    assert orphans.has_owner_ended(
        f"{pid}.{int(start) + 1}.{boot}.{space}"
    )  # the number serves another
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    began = orphans.process_start_ticks(child.pid)
    assert not orphans.has_owner_ended(f"{child.pid}.{began}.{boot}.{space}")
    child.communicate(b"\n")
    assert orphans.has_owner_ended(f"{child.pid}.{began}.{boot}.{space}")
    assert not orphans.has_owner_ended(
        f"{child.pid}.{began}.abc.{space}"
    )  # of another boot or machine
    assert not orphans.has_owner_ended(
        f"{child.pid}.{began}.{boot}.1"
    )  # of another namespace of processes
    assert not orphans.has_owner_ended("") and not orphans.has_owner_ended("somebody else's")


# ------------------------------------------------------------------------------ faults
def refusal(name: engine.EngineName) -> str:
    with pytest.raises(SandboxUnavailableError) as told:
        engine.get_engine(name)
    return str(told.value)


@pytest.mark.parametrize("name", engine.ENGINE_NAMES)
def test_an_absent_program_is_told(
    name: engine.EngineName, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine._get_engine.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert f"{name} is not installed: install it" in refusal(name)
    assert "apt-get install" in refusal(name)


def test_an_engine_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in engine.ENGINE_NAMES:
        program = tmp_path / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", "tcp://10.0.0.1:2375")
    monkeypatch.setenv("CONTAINER_HOST", "ssh://somewhere/run/podman.sock")
    wanted = "docker is configured to use tcp://10.0.0.1:2375: sandboxes need an engine"
    assert wanted in refusal("docker")
    assert "podman is configured to use ssh://somewhere" in refusal("podman")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"Got permission denied while trying to connect to the Docker daemon socket", "usermod"),
        (b"Cannot connect to the Docker daemon at unix:///x. Is it running?", "start its daemon"),
        (b"docker: write /var/lib/x: no space left on device.\nSee 'docker run'", "disk is full"),
        (b"Error: x: image not known", "run again: it is imported anew"),
    ],
)
def test_a_fault_of_an_engine_is_one_sentence_with_the_way_out(said: bytes, told: str) -> None:
    error = engine.engine_error("docker", "run", said)
    assert isinstance(error, SandboxUnavailableError)
    assert told in str(error) and "See '" not in str(error)


def test_what_nobody_knows_is_told_in_the_engines_words() -> None:
    error = engine.engine_error("podman", "run", b"Error: first\nError: something new\n")
    assert type(error) is SandboxError
    assert str(error) == "`podman run` fails: Error: something new"
