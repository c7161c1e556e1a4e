"""Directories of this machine that a sandbox shows read-only."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from intercode_sandbox import Sandbox, SandboxSpec
from intercode_sandbox.errors import SandboxError, SandboxUnavailableError, UsageError
from intercode_sandbox.supervisor import root_files
from intercode_sandbox.types import Image
from support import backend
from support.ordinary_user import run_as_ordinary_user
from support.sandboxes import layer_of, open_one, open_test_sandbox

pytestmark = pytest.mark.sandbox
_CHANGES = (
    "echo x > /data/new",
    "echo x > /data/file",
    "echo x >> /data/deep/file",
    "rm -rf /data/deep",
    "mv /data/file /data/other",
    "chmod 777 /data/file",
    "touch /data/file",
    "ln /data/file /tmp/hard && echo x > /tmp/hard",
    "mount -o remount,rw /data",
    "mount -o remount,rw,bind /data",
    "umount /data",
    "mkdir /data/new",
    "mknod /data/null c 1 3",
    "rmdir /data",
    "mv /data /moved",
    "cd /data/.. && rm -rf data",
    "setfattr -n user.a -v b /data/file",
)


@pytest.fixture
def shown() -> Iterator[Path]:
    """A directory that the user of sandboxes can enter."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "shown")
        (path / "deep").mkdir(parents=True)
        Path(name).chmod(0o755)
        (path / "file").write_text("one\n")
        (path / "deep" / "file").write_text("two\n")
        yield path


def contents(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path.relative_to(directory)): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in directory.rglob("*")
    }


@pytest.mark.skipif(backend.chosen() == "chroot", reason="chroot refuses mounts")
def test_programs_read_a_mounted_directory_and_cannot_change_it(shown: Path) -> None:
    before = contents(shown)
    with open_one(mounts={"/data": shown}) as sandbox:
        assert "mounts" in sandbox.capabilities
        assert sandbox.read("/data/file") == b"one\n"
        assert sandbox.run("cat /data/file /data/deep/file").output == "one\ntwo\n"
        assert not sandbox.changes()
        for change in _CHANGES:
            assert not sandbox.run(change).ok, change
        for path in ("/data/new", "/data/file"):
            with pytest.raises(OSError):
                sandbox.write(path, "x")
        for path in ("/data/file", "/data/deep", "/data"):
            with pytest.raises(OSError):
                sandbox.remove(path, recursive=True)
        assert not [path for path in sandbox.changes() if path.startswith("/data")]
        with sandbox.fork()[0] as copy:
            assert copy.read("/data/file") == b"one\n"
            assert not copy.run("echo x > /data/file").ok
        snapshot = sandbox.snapshot()
        with Sandbox.from_snapshot(snapshot) as restored:
            assert not restored.run("rm /data/file").ok
        snapshot.close()
    assert contents(shown) == before


@pytest.mark.skipif(backend.chosen() == "chroot", reason="chroot refuses mounts")
def test_links_in_a_mounted_directory_lead_to_files_of_the_sandbox(shown: Path) -> None:
    secret = shown.parent / "secret"
    secret.write_text("secret")
    (shown / "absolute").symlink_to(secret)
    (shown / "relative").symlink_to("../secret")
    (shown / "up").symlink_to("..")
    with open_one(mounts={"/data": shown}) as sandbox:
        for path in ("absolute", "relative", "up/secret", "up/../secret"):
            assert not sandbox.run(["cat", f"/data/{path}"]).ok
            with pytest.raises(FileNotFoundError):
                sandbox.read(f"/data/{path}")
        assert str(shown) not in sandbox.run("cat /proc/self/mountinfo").output or (
            backend.is_container()
        )


@pytest.mark.namespace_only("an engine binds the directory, with its sockets")
def test_a_socket_in_a_mounted_directory_is_out_of_reach(shown: Path) -> None:
    code = "import socket; socket.socket(socket.AF_UNIX).connect('/data/socket')"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(shown / "socket"))
        (shown / "socket").chmod(0o777)
        server.listen()
        with open_one(mounts={"/data": shown}) as sandbox:
            result = sandbox.run(["python3", "-c", code])
    assert "ConnectionRefusedError" in result.stderr


@pytest.mark.skipif(backend.chosen() == "chroot", reason="chroot refuses mounts")
def test_directories_above_a_mount_keep_their_modes(shown: Path) -> None:
    with open_one(mounts={"/tmp/in/data": shown, "/root/data": shown}) as sandbox:
        assert sandbox.stat("/tmp").mode == 0o1777 and sandbox.stat("/root").mode == 0o700
        assert sandbox.read("/tmp/in/data/file") == sandbox.read("/root/data/file") == b"one\n"
        assert sandbox.run("echo x > /tmp/own").ok
        with pytest.raises(OSError):
            sandbox.remove("/tmp", recursive=True)
        assert sandbox.stat("/tmp").mode == 0o1777 and not sandbox.exists("/tmp/own")
        assert sandbox.read("/tmp/in/data/file") == b"one\n"


@pytest.mark.parametrize(
    ("mounts", "message"),
    [
        ({"data": "SHOWN"}, "is absolute"),
        ({"/": "SHOWN"}, "below /"),
        ({"/a/../b": "SHOWN"}, "has no .."),
        ({"//a": "SHOWN"}, "below /"),
        ({"/proc/a": "SHOWN"}, "directory of the system"),
        ({"/dev": "SHOWN"}, "directory of the system"),
        ({"/data": 3}, "directory of this machine"),
        ([], "are a mapping"),
        ({"/usr/data": "SHOWN"}, "another directory is at /usr"),
        ({"/data": "SHOWN", "/data/in": "SHOWN"}, "another directory is at /data"),
        ({"/data/in": "SHOWN", "/data": "SHOWN"}, "another directory is at /data/in"),
        ({"/etc/hosts": "SHOWN"}, "no directory of the image"),
        ({"/data": "SHOWN/none"}, "no directory of this machine"),
        ({"/data": "SHOWN/file"}, "no directory of this machine"),
        ({"/data": "/"}, "holds the mount"),
        ({"/data": "/proc"}, "directory of the system"),
        ({"/data": "/proc/1"}, "directory of the system"),
        ({"/data": "/sys/kernel"}, "directory of the system"),
        ({"/data": "/dev"}, "directory of the system"),
    ],
)
@pytest.mark.namespace_only("the same in containers")
def test_a_mount_that_cannot_be_shown_is_refused(
    shown: Path, mounts: dict[str, str], message: str
) -> None:
    if isinstance(mounts, dict):
        mounts = {
            path: source.replace("SHOWN", str(shown)) if isinstance(source, str) else source
            for path, source in mounts.items()
        }
    with pytest.raises(UsageError, match=message):
        open_test_sandbox(mounts=mounts)


@pytest.mark.namespace_only("the same in containers")
def test_no_mount_goes_through_a_link_of_the_image(shown: Path) -> None:
    root = shown.parent / "layer"
    (root / "real").mkdir(parents=True)
    (root / "link").symlink_to("/etc")
    (root / "real" / "link").symlink_to("..")
    for target in ("/link", "/link/data", "/real/link/data"):
        with pytest.raises(UsageError, match="no directory of the image"):
            open_test_sandbox(layers=(layer_of(root),), mounts={target: shown})
    with open_test_sandbox(layers=(layer_of(root),), mounts={"/real/data": shown}) as sandbox:
        assert sandbox.read("/real/data/file") == b"one\n"


@pytest.mark.parametrize(
    "forge",
    [
        "mkdir -p /evil/data; echo forged > /evil/data/file; ln -s /evil /in",
        "mkdir -p /evil; echo forged > /evil/file; mkdir /in; ln -s /evil /in/data",
        "mkdir /in; ln -s ../../proc /in/data",
        "ln -s ../dev /in; mkdir /dev/shm/data",
        "mkdir /in; ln -s /usr /in/data",
        "mkdir /in; echo forged > /in/data",
        "echo forged > /in",
    ],
)
@pytest.mark.namespace_only("an engine mounts before files are copied")
def test_files_of_a_sandbox_do_not_forge_a_mount(shown: Path, tmp_path: Path, forge: str) -> None:
    mounts = {"/in/data": shown}
    with open_one() as hostile, open_one(mounts=mounts) as sandbox:
        assert hostile.run(forge).ok
        hostile.save(tmp_path / "saved")
        with pytest.raises(SandboxError, match="nothing can be mounted at /in/data"):
            Sandbox.load(tmp_path / "saved", backend=backend.chosen(), mounts=mounts)
        snapshot = hostile.snapshot()
        with pytest.raises(SandboxError, match="nothing can be mounted at /in/data"):
            sandbox.restore(snapshot)
        snapshot.close()
        assert not sandbox.is_lost
        sandbox.write("/own", "a")
        assert sandbox.read("/in/data/file") == b"one\n"
        assert sandbox.run("cat /own /in/data/file").output == "aone\n"


@pytest.mark.namespace_only("an engine mounts before files are copied")
def test_a_mount_survives_what_is_restored(shown: Path) -> None:
    with open_one(mounts={"/in/data": shown}) as sandbox, open_one() as other:
        assert not sandbox.run("rm -rf /in").ok and not sandbox.run("mv /in /out").ok
        assert other.run("mkdir -p /in/data; echo forged > /in/data/file").ok
        for source in (other, sandbox, other):
            snapshot = source.snapshot()
            sandbox.restore(snapshot)
            snapshot.close()
            assert sandbox.run("cat /in/data/file").output == "one\n"
            assert not sandbox.run("echo x > /in/data/file").ok


@pytest.mark.skipif(backend.chosen() == "chroot", reason="chroot refuses mounts")
def test_the_source_of_a_mount_is_checked_for_each_sandbox(shown: Path) -> None:
    parent = shown.parent / "parent"
    (parent / "shown").mkdir(parents=True)
    (parent / "shown" / "file").write_text("first\n")
    mounts: dict[str, str | Path] = {"/data": parent / "shown"}
    with open_one(mounts=mounts) as sandbox:
        mounts["/data"] = "/none"
        with sandbox.fork()[0] as copy:
            assert copy.read("/data/file") == b"first\n"
        if os.geteuid() == 0:
            parent.chmod(0o700)
            with pytest.raises(UsageError, match="cannot enter"):
                sandbox.fork()
            parent.chmod(0o755)
        with pytest.raises(SandboxError, match="mounts"):
            sandbox.base.recycle()
    parent.rename(shown.parent / "old")
    with pytest.raises(UsageError, match="no directory of this machine"):
        open_one(mounts={"/data": parent / "shown"})
    shutil.copytree(shown, parent / "shown")
    with open_one(mounts={"/data": parent / "shown"}) as sandbox:
        assert sandbox.read("/data/file") == b"one\n"


@pytest.mark.skipif(backend.chosen() == "chroot", reason="chroot refuses mounts")
def test_a_source_that_is_replaced_after_its_check_is_not_shown(
    shown: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = root_files._shown_directory

    def replace(source: str | Path) -> tuple[str, str]:
        result = check(source)
        shown.rename(shown.parent / "old")
        shutil.copytree(shown.parent / "old", shown)
        return result

    monkeypatch.setattr(root_files, "_shown_directory", replace)
    with pytest.raises(SandboxError, match="cannot be shown"):
        open_test_sandbox(mounts={"/data": shown})


@pytest.mark.namespace_only("the same in containers")
def test_no_mount_covers_the_interpreter(shown: Path) -> None:
    if root_files.python_home() is None:
        pytest.skip("the interpreter is in /usr")
    for target in ("/opt", "/opt/python", "/opt/python/in"):
        with pytest.raises(UsageError, match="another directory is at /opt/python"):
            open_test_sandbox(mounts={target: shown})


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's sandboxes enter what that user can")
@pytest.mark.namespace_only("the same in containers")
def test_a_directory_that_the_user_of_sandboxes_cannot_enter_is_named(shown: Path) -> None:
    shown.chmod(0o700)
    with pytest.raises(UsageError, match=rf"chmod o\+x {shown}, or copy it"):
        open_test_sandbox(mounts={"/data": shown})


@pytest.mark.parametrize("tier", ["chroot", "landlock", "remote:http://127.0.0.1:9"])
def test_a_back_end_without_mounts_names_the_way_out(shown: Path, tier: str) -> None:
    from intercode_sandbox import open_sandbox

    with pytest.raises(SandboxUnavailableError, match="cannot show directories of this machine: u"):
        open_sandbox(SandboxSpec(Image("host", ""), mounts={"/data": shown}), tier)


_AS_ORDINARY_USER = """
from pathlib import Path
from intercode_sandbox import Sandbox
Path.home().chmod(0o755)
shown = Path.home() / "shown"
shown.mkdir(0o755)
(shown / "file").write_text("one")
with Sandbox("host", mounts={"/data": shown}) as sandbox:
    with sandbox.fork(1)[0] as fork:
        print(fork.run("cat /data/file").stdout)
    print(sandbox.run("rm /data/file").exit_code, (shown / "file").read_text())
"""


@pytest.mark.namespace_only("the engines of containers belong to root")
def test_an_ordinary_user_shows_a_directory() -> None:
    done = run_as_ordinary_user([sys.executable, "-c", _AS_ORDINARY_USER])
    assert done.stdout.split() == ["one", "1", "one"], done.stderr
