"""Parts of the container back end without an engine: archives, upper layers, owners, errors."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import stat
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from intercode_sandbox.container import engine, image_import, orphans
from intercode_sandbox.container import start as starting
from intercode_sandbox.container.container_spec import container_spec
from intercode_sandbox.contract import Limits, SandboxSpec
from intercode_sandbox.errors import SandboxError, SandboxUnavailableError
from intercode_sandbox.platforms.paths import sandbox_uid
from intercode_sandbox.supervisor import upper_layer
from intercode_sandbox.supervisor.control_group import CgroupCounter
from intercode_sandbox.supervisor.runtime import processor_shares
from intercode_sandbox.types import Image

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY


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
    """The names of users are read from the image on this machine."""
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "passwd").write_text("root:x:0:0:secret:/:/bin/sh\n")
    image = tmp_path / "image"
    image.mkdir()
    (image / "etc").symlink_to(tmp_path / "host")
    made = container_spec(SandboxSpec(Image("evil", "sha256:0", image)), "docker")
    held = b"".join(
        p.read_bytes()
        for t in made.trees[:2]
        for p in t.path.rglob("*")
        if p.is_file() and not p.is_symlink()
    )
    assert b"secret" not in held


def test_directories_of_killed_starts_are_removed(
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


def test_a_layer_belongs_to_the_user_of_sandboxes(tmp_path: Path) -> None:
    data = layer(tree(tmp_path / "t"))
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        entries = {entry.name: entry for entry in archive}
    assert sorted(entries) == [
        "d",
        "d/.wh.gone",
        "d/file",
        "d/inner",
        "d/inner/.wh..wh..opq",
        "d/inner/link",
        "d/same",
        "pipe",
    ]
    assert {(e.uid, e.gid) for e in entries.values()} == {(sandbox_uid(), sandbox_uid())}
    assert (entries["d/file"].size, entries["d/file"].mode) == (7, 0o4751)
    assert entries["d/file"].pax_headers["mtime"] == "1700000000.123456789"
    assert entries["d/same"].islnk() and entries["d/same"].linkname == "d/file"
    assert entries["d/inner/link"].linkname == "../file" and entries["pipe"].isfifo()


@pytest.mark.parametrize(("asked", "given"), [(0.5, "0.5"), (64.0, "2")])
def test_an_engine_is_asked_for_no_more_processors_than_there_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asked: float, given: str
) -> None:
    """Docker refuses more."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    spec = SandboxSpec(Image("host", "sha256:0"), limits=Limits(cpus=asked))
    found, layout = (
        engine.ContainerEngine("docker", "docker", "1", False),
        container_spec(spec, "docker"),
    )
    words = starting._run_command(found, spec, layout, "name", tmp_path, "image")
    assert [word for word in words if word.startswith("--cpus")] == [f"--cpus={given}"]


def test_a_refused_limit_on_processors_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A control group of version 1 cannot have more than the one above it."""

    def refuse(*_: str) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    (tmp_path / "cpu.cfs_quota_us").touch()
    monkeypatch.setattr(processor_shares, "write_control_file", refuse)
    with pytest.raises(OSError, match=r"cpus=4\.0 is refused: Invalid argument"):
        processor_shares.limit(str(tmp_path), 4.0)


def test_the_same_tree_gives_the_same_bytes(tmp_path: Path) -> None:
    root = tree(tmp_path / "t")
    assert layer(root) == layer(root)
    (root / "d" / "file").write_bytes(b"other  ")
    assert layer(root) != (before := layer(tree(tmp_path / "u"))) and before


# --------------------------------------------------------------------- upper layers
def test_an_upper_layer_is_written_and_its_paths_are_listed(tmp_path: Path) -> None:
    lower, sandbox, upper = (tmp_path / name for name in ("below", "sandbox", "upper"))
    for root in (lower, sandbox):
        (root / "etc" / "deep").mkdir(parents=True)
    (lower / "etc" / "removed").write_text("old")
    (sandbox / "etc").chmod(0o750)
    (sandbox / "etc" / "deep" / "new").write_text("new")
    (sandbox / "etc" / "away").symlink_to("/etc/passwd")
    os.utime(sandbox / "etc" / "deep", ns=(5, 7))
    paths = ["/etc/away", "/etc/deep", "/etc/deep/new", "/etc/removed"]
    upper.mkdir()
    root, target = os.open(sandbox, DIRECTORY), os.open(upper, DIRECTORY)
    upper_layer.write_upper_layer(target, root, paths)
    assert (upper / "etc" / "deep" / "new").read_text() == "new"
    assert os.readlink(upper / "etc" / "away") == "/etc/passwd"
    gone = os.stat(upper / "etc" / "removed")
    assert stat.S_ISCHR(gone.st_mode) and gone.st_rdev == 0
    assert stat.S_IMODE(os.stat(upper / "etc").st_mode) == 0o750
    assert os.stat(upper / "etc" / "deep").st_mtime_ns == 7
    assert upper_layer.list_changed_paths(target, [str(lower)]) == ["/etc", *paths]
    os.close(root)
    os.close(target)


def test_an_opaque_directory_hides_lower_layers(tmp_path: Path) -> None:
    lower, upper = tmp_path / "below", tmp_path / "upper"
    for root, name in ((lower, "old"), (upper, "new")):
        (root / "d").mkdir(parents=True)
        (root / "d" / name).write_text("")
    os.setxattr(upper / "d", "user.overlay.opaque", b"y")
    at = os.open(upper, DIRECTORY)
    assert upper_layer.list_changed_paths(at, [str(lower)]) == ["/d", "/d/old", "/d/new"]
    os.close(at)


def test_links_of_a_sandbox_are_not_followed(tmp_path: Path) -> None:
    outside, sandbox, upper = (tmp_path / name for name in ("outside", "sandbox", "upper"))
    for directory in (outside, sandbox, upper):
        directory.mkdir()
    (outside / "secret").write_text("secret")
    (sandbox / "d").symlink_to(outside)
    root, target = os.open(sandbox, DIRECTORY), os.open(upper, DIRECTORY)
    upper_layer.write_upper_layer(target, root, ["/d/secret"])
    assert stat.S_ISCHR(os.lstat(upper / "d" / "secret").st_mode)
    os.close(root)
    os.close(target)


# ------------------------------------------------------------------------------ owners
def test_a_counter_that_is_closed_while_another_thread_reads_it_takes_no_other_file(
    tmp_path: Path,
) -> None:
    def opened(count: int) -> int:
        """Return a descriptor with a number that no other thread gets."""
        (tmp_path / "events").write_text(f"oom_kill {count}\n")
        with (tmp_path / "events").open("rb") as file:
            return fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 700)

    number = opened(1)
    counter = CgroupCounter(number, b"oom_kill")
    assert counter.increased() and not counter.increased()
    counter.close()
    other = opened(5)
    assert other == number and not counter.increased()
    counter.close()
    assert os.read(other, 10) == b"oom_kill 5"
    os.close(other)


def test_only_a_local_owner_can_be_known_to_have_ended() -> None:
    me = orphans.current_owner()
    assert not orphans.has_owner_ended(me)
    pid, start, boot, space = me.split(".")
    # the number belongs to another process
    assert orphans.has_owner_ended(f"{pid}.{int(start) + 1}.{boot}.{space}")
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    began = orphans.process_start_ticks(child.pid)
    assert not orphans.has_owner_ended(f"{child.pid}.{began}.{boot}.{space}")
    child.communicate(b"\n")
    assert orphans.has_owner_ended(f"{child.pid}.{began}.{boot}.{space}")
    # another boot or machine
    assert not orphans.has_owner_ended(f"{child.pid}.{began}.abc.{space}")
    assert not orphans.has_owner_ended(f"{child.pid}.{began}.{boot}.1")  # another process namespace
    assert not orphans.has_owner_ended("") and not orphans.has_owner_ended("somebody else's")


# ------------------------------------------------------------------------------ errors
def refusal(name: engine.EngineName) -> str:
    with pytest.raises(SandboxUnavailableError) as message:
        engine.get_engine(name)
    return str(message.value)


@pytest.mark.parametrize("name", engine.ENGINE_NAMES)
def test_a_missing_program_is_reported(
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
    ("output", "message"),
    [
        (b"Got permission denied while trying to connect to the Docker daemon socket", "usermod"),
        (b"Cannot connect to the Docker daemon at unix:///x. Is it running?", "start its daemon"),
        (b"docker: write /var/lib/x: no space left on device.\nSee 'docker run'", "disk is full"),
        (b"Error: x: image not known", "run again: it is imported again"),
    ],
)
def test_an_error_of_an_engine_is_explained_with_a_remedy(output: bytes, message: str) -> None:
    error = engine.engine_error("docker", "run", output)
    assert isinstance(error, SandboxUnavailableError)
    assert message in str(error) and "See '" not in str(error)


def test_an_unknown_error_quotes_the_engine() -> None:
    error = engine.engine_error("podman", "run", b"Error: first\nError: something new\n")
    assert type(error) is SandboxError
    assert str(error) == "`podman run` fails: Error: something new"
