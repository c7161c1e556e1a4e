"""The tier ``chroot``: what commands cannot do with what sandboxes share, one after another or at
the same time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from intercode_sandbox import SandboxSpec, images
from intercode_sandbox.chroot import guard, shared_programs
from intercode_sandbox.chroot import open as factory
from intercode_sandbox.chroot import sandbox as chroot_sandbox
from intercode_sandbox.chroot.root_layout import root_layout
from intercode_sandbox.chroot.sandbox import ChrootSandbox
from intercode_sandbox.images.cache.remove_tree import remove_tree
from intercode_sandbox.supervisor.recycling import recycler
from support.sandboxes import a_duration, eventually, running

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.namespace_only("opens sandboxes of the tier chroot, whatever the back end"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the tier chroot needs root"),
]
MIB = 1 << 20


def open_chroot() -> ChrootSandbox:
    return factory.open_chroot(SandboxSpec(images.resolve("host")))


@pytest.fixture
def sandbox() -> Iterator[ChrootSandbox]:
    with open_chroot() as opened:
        yield opened


@pytest.mark.parametrize("name", ["proc", "sys"])
def test_files_in_another_directory_of_that_name_are_found_and_removed(name: str) -> None:
    recycler().clear()
    with open_chroot() as first:
        pid = first.supervisor_pid
        first.run(f"rmdir /{name} && mkdir /{name} && head -c {MIB} /dev/zero > /{name}/x")
        first.run(["chmod", "555", f"/{name}"])
        assert list(first.changes()) == [f"/{name}/x"]
        assert first.size()[0] >= MIB
    with open_chroot() as second:
        assert second.supervisor_pid == pid and second.changes() == {}
        assert second.run(f"ls -A /{name}; stat -c %a /{name}").output == "555\n"
        # it belongs to root again
        assert (
            second.run(f"chmod 755 /{name}").exit_code
            == second.run(f"touch /{name}/y").exit_code
            == 1
        )
        assert second.changes() == {}
    recycler().clear()


@pytest.fixture
def showing_mnt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChrootSandbox]:
    """A sandbox whose /mnt is a directory of this machine in which everybody may write."""
    for directory in (tmp_path, tmp_path / "open"):
        directory.mkdir(exist_ok=True)
        directory.chmod(0o1777)
    (tmp_path / "closed").mkdir(mode=0o700)
    (tmp_path / "file").write_text("of the machine")
    (tmp_path / "file").chmod(0o666)
    spec = SandboxSpec(images.resolve("host"))
    layout = root_layout(spec)
    shared = (*layout.shared, (str(tmp_path), "/mnt", "of-this-test"))
    changed = replace(layout, shared=shared, recycle_key="of-this-test")
    monkeypatch.setattr(chroot_sandbox, "root_layout", lambda _: changed)
    sandbox = factory.open_chroot(spec)
    try:
        yield sandbox
    finally:
        sandbox.close(wait=True)
        for kept in guard._retained_directory().glob("*of-this-test*"):
            remove_tree(kept)


def test_a_replaced_shared_directory_is_found_and_shown_again(showing_mnt: ChrootSandbox) -> None:
    snapshot = showing_mnt.snapshot()
    showing_mnt.run(f"mv /mnt /m && mkdir /mnt && head -c {MIB} /dev/zero > /mnt/x")
    showing_mnt.run("chmod 775 /mnt; touch -d @0 /mnt")
    changes = showing_mnt.changes()
    assert {"/mnt/x", "/m", "/m/closed", "/m/file"} <= set(changes)
    assert changes["/m/closed"].digest == "unread"
    assert showing_mnt.size()[0] >= MIB
    for again in (showing_mnt.recycle, lambda: showing_mnt.restore(snapshot)):
        again()
        assert showing_mnt.changes() == {}
        assert showing_mnt.run("cat /mnt/file; stat -c %a /mnt").output == "of the machine1775\n"
        assert showing_mnt.run("touch /mnt/x; mv /mnt /m; ln -s /tmp /mnt").exit_code == 0
    snapshot.close()


def test_a_shared_directory_in_a_replaced_one_is_shown_again(sandbox: ChrootSandbox) -> None:
    if not sandbox.run("ls -d /etc/alternatives").output:
        pytest.skip("this machine has no /etc/alternatives")
    listing = sandbox.run("ls -l /etc/alternatives").output
    sandbox.run(f"mv /etc /e; ln -s {Path.home()} /etc")
    sandbox.recycle()
    assert sandbox.changes() == {}
    assert sandbox.run("ls -l /etc/alternatives").output == listing


def test_the_supervisor_reads_only_what_its_owner_grants(
    sandbox: ChrootSandbox, tmp_path: Path
) -> None:
    (tmp_path / "closed").write_text("of the machine")
    tmp_path.chmod(0o700)
    source = os.open(tmp_path, os.O_RDONLY)
    try:
        for _ in range(2):
            with pytest.raises(PermissionError):
                sandbox.connection.request("replace_files", [source], paths=["/closed"])
            with sandbox._granted(source):
                sandbox.connection.request("replace_files", [source], paths=["/closed"])
            assert sandbox.read("/closed") == b"of the machine"
    finally:
        os.close(source)


def test_a_shared_directory_may_be_moved_away_and_back(showing_mnt: ChrootSandbox) -> None:
    showing_mnt.run("mv /mnt /m; mv /m /mnt")
    assert showing_mnt.changes() == {}
    showing_mnt.recycle()


def test_nobody_else_may_write_to_shared_directories(showing_mnt: ChrootSandbox) -> None:
    tries = "for f in /mnt/x /mnt/open/x /mnt/file; do echo changed > $f; done"
    output = showing_mnt.run(f"({tries}) 2>&1 | grep -c denied; cat /mnt/file").output
    assert output == "3\nof the machine"
    assert showing_mnt.changes() == {}


def test_a_program_cannot_be_watched(sandbox: ChrootSandbox) -> None:
    code = (
        "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nfd = c.inotify_init()\n"
        "print(c.inotify_add_watch(fd, b'/usr/bin/grep', 0xfff), ctypes.get_errno())"
    )
    assert sandbox.run(["python3", "-c", code]).output == "-1 28\n"
    shows = "until [ $(wc -l < /tmp/shown) = {} ]; do sleep 0.05; done"
    polled = ": > /tmp/shown; echo a > /tmp/f; tail -n 1 -s 0.1 -f /tmp/f > /tmp/shown 2> /tmp/e & "
    polled += f"{shows.format(1)}; echo b >> /tmp/f; {shows.format(2)}; kill $!; "
    polled += "wait $! 2> /dev/null; cat /tmp/shown"
    assert sandbox.run(polled, timeout=60).output == "a\nb\n"


def test_objects_of_ipc_that_exist_cannot_be_used(sandbox: ChrootSandbox) -> None:
    code = (
        "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\n"
        "calls = (lambda: c.shmat(0, None, 0), lambda: c.shmctl(0, 13, None),\n"
        " lambda: c.semop(0, None, 0), lambda: c.semctl(0, 0, 12), lambda: c.msgctl(0, 11, None),\n"
        " lambda: c.msgsnd(0, None, 0, 0), lambda: c.msgrcv(0, None, 0, 0, 0))\n"
        "print({(f(), ctypes.get_errno())[1] for f in calls})\n"
    )
    assert sandbox.run(["python3", "-c", code]).output == "{38}\n"


def test_open_files_are_limited(sandbox: ChrootSandbox) -> None:
    limit = sandbox.spec.limits.open_files
    assert sandbox.run("ulimit -Hn; ulimit -Sn").output == f"{limit}\n{limit}\n"


def test_a_process_that_stops_all_others_ends_with_its_sandbox() -> None:
    sandbox = open_chroot()
    mark = a_duration()
    code = "import os\nwhile True:\n    try: os.kill(-1, 19)\n    except OSError: pass"
    sandbox.spawn(["python3", "-c", code, mark])
    eventually(lambda: len(running(mark)) == 1, "the process started")
    assert sandbox._held is not None
    end = sandbox._held.guard
    sandbox.close(wait=True)
    assert end.poll() == 0 and not running(mark)


def test_a_user_id_that_is_used_again_is_left_alone(sandbox: ChrootSandbox, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    os.chown(tmp_path / "root", sandbox.user_id, sandbox.user_id)
    guard._end_user_of(tmp_path)
    assert sandbox.run(["echo", "on"]).output == "on\n"


def test_images_of_equal_names_share_no_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_programs, "cache_root", lambda: tmp_path)
    opened = {}
    for name in "ab":
        layer = tmp_path / name / "rootfs"
        (layer / "usr").mkdir(parents=True)
        (layer / "usr" / "program").write_text(name)
        fd = shared_programs.open_programs(layer)
        assert fd is not None
        opened[name] = fd
    for name, fd in opened.items():
        program = os.open("usr/program", os.O_RDONLY, dir_fd=fd)
        assert os.read(program, 9) == name.encode()
        os.close(program)
        os.close(fd)
    assert len([path for path in (tmp_path / "programs").iterdir() if path.is_dir()]) == 2
    remove_tree(tmp_path / "a" / "rootfs")
    shared_programs._remove_unused(tmp_path / "programs")
    assert len([path for path in (tmp_path / "programs").iterdir() if path.is_dir()]) == 1


def test_a_program_that_was_changed_in_the_image_is_not_linked(tmp_path: Path) -> None:
    rootfs = tmp_path / "rootfs"
    (rootfs / "usr" / "bin").mkdir(parents=True)
    for name in ("same", "changed"):
        (rootfs / "usr" / "bin" / name).write_text("old")
    image = replace(images.resolve("host"), name="in-place", digest="0", root=rootfs)
    for text in ("old", "new content"):
        (rootfs / "usr" / "bin" / "changed").write_text(text)
        sandbox = factory.open_chroot(SandboxSpec(image))
        try:
            assert sandbox.read("/usr/bin/changed").decode() == text
            program = Path(sandbox.base_trees[0]).parent / "root" / "usr" / "bin" / "same"
            assert program.stat().st_nlink >= 2
        finally:
            sandbox.close(wait=True)


def test_a_copy_has_what_replaced_directories_of_root() -> None:
    with open_chroot() as sandbox:
        sandbox.run("rmdir /proc; mkdir /proc; echo x > /proc/x; mkdir /n; mv /etc /n/etc")
        with sandbox.fork() as copy:
            assert copy.run("cat /proc/x; ls -d /etc /n/etc 2> /dev/null").output == "x\n/n/etc\n"
            assert set(copy.changes()) == set(sandbox.changes())
