"""The launcher sets up the sandbox that it expects next: that one is like all others, and shows the
files of the machine as they are."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from intercode_sandbox import SandboxSpec, images
from intercode_sandbox.errors import SandboxError
from intercode_sandbox.namespace.launcher import Launcher
from intercode_sandbox.namespace.sandbox import NamespaceSandbox
from intercode_sandbox.platforms.paths import sandbox_uid
from intercode_sandbox.supervisor.process_table import list_descendants
from intercode_sandbox.supervisor.runtime.prewarmed import identify_files
from support.sandboxes import eventually

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.namespace_only("containers are not set up ahead"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root sees the root directory of others"),
]

_HOST = SandboxSpec(images.resolve("host"))


@pytest.fixture(autouse=True)
def _own_launcher() -> Iterator[None]:
    """Begin without supervisors that wait, and end other tests' expectations."""
    Launcher.stop()
    yield
    Launcher.stop()


def set_up_ahead() -> set[int]:
    """The supervisors that have a sandbox and no owner."""
    found = set()
    for process in list_descendants(Launcher.get().pid):
        try:
            is_set_up = os.stat(f"/proc/{process.pid}/root").st_dev != os.stat("/").st_dev
            if is_set_up and process.inner_pid == process.pid:  # not PID 1, which is inside
                found.add(process.pid)
        except OSError:
            continue
    return found


def expect(spec: SandboxSpec, *closed: NamespaceSandbox) -> int:
    """Open a sandbox as often as the launcher wants, and return the supervisor of the next.

    ``closed``: earlier sandboxes, whose supervisors may still be ending.
    """
    had_owners = {sandbox.supervisor_pid for sandbox in closed}
    for _ in range(3):
        with NamespaceSandbox(spec) as sandbox:
            had_owners.add(sandbox.supervisor_pid)
    eventually(lambda: len(set_up_ahead() - had_owners) == 1, "a sandbox is set up ahead")
    (pid,) = set_up_ahead() - had_owners
    return pid


def describe(sandbox: NamespaceSandbox) -> list[str]:
    """What a program in the sandbox sees of it."""
    shown = (
        "cat /proc/self/mountinfo /proc/self/limits; hostname; env; stat -c '%A %u %n' /* /dev/*"
    )
    result = sandbox.run(["bash", "-c", shown], cwd="/")
    assert result.ok
    lines = result.output.replace(str(sandbox.user_id), "ID").splitlines()
    return [" ".join(line.split()[4:]) if " - " in line else line for line in lines]


def test_a_sandbox_that_was_set_up_ahead_is_like_others() -> None:
    with NamespaceSandbox(_HOST) as first:
        expected = describe(first)
    waiting = expect(_HOST, first)
    with NamespaceSandbox(_HOST) as ahead, NamespaceSandbox(_HOST) as other:
        assert ahead.supervisor_pid == waiting != other.supervisor_pid
        assert not ahead.changes()
        assert describe(ahead) == describe(other) == expected
        assert ahead.run(["sh", "-c", "echo 1 > /tmp/x; mkdir -p /srv/d"], cwd="/").ok
        assert not other.run(["ls", "/tmp/x", "/srv/d"], cwd="/").ok


def test_another_sandbox_is_not_the_one_that_was_set_up() -> None:
    waiting = expect(_HOST)
    with NamespaceSandbox(replace(_HOST, hostname="other")) as other:
        assert other.supervisor_pid != waiting
        assert other.run(["hostname"], cwd="/").output.strip() == "other"
    eventually(lambda: not set_up_ahead(), "what nobody expects any more is gone")


def test_files_that_were_replaced_since_are_shown_as_they_are(tmp_path: Path) -> None:
    root = tmp_path / "root"
    spec = SandboxSpec(images.resolve(f"dir:{_directory(root, 'old')}"))
    assert spec.image.root == root  # used in place
    waiting = expect(spec)
    shutil.rmtree(root)
    _directory(root, "new")
    with NamespaceSandbox(spec) as sandbox:
        assert sandbox.supervisor_pid != waiting
        assert sandbox.read("/file") == b"new"


def _directory(root: Path, text: str) -> Path:
    root.mkdir()
    (root / "file").write_text(text)
    for path in (root.parent, root, root / "file"):
        os.chown(path, sandbox_uid(), sandbox_uid())
    root.parent.parent.chmod(0o755)
    return root


def test_hidden_files_that_appear_make_another_request(tmp_path: Path) -> None:
    machine, layer = tmp_path / "machine", tmp_path / "layer"
    (machine / "local").mkdir(parents=True)
    layer.mkdir()
    request = {
        "layers": [str(layer)],
        "binds": [[str(machine), "/usr"]],
        "anonymous_mounts": [["", "/usr/local/src"], ["/dev/null", "/secret"]],
    }
    for appeared in (machine / "local/src", layer / "secret"):
        before = identify_files(request)
        assert identify_files(request) == before
        appeared.mkdir()
        assert identify_files(request) != before


def test_a_name_that_no_file_can_have_is_an_error_of_one_sandbox() -> None:
    with NamespaceSandbox(_HOST) as other:
        for name in ("/a\0b", "/\ud800"):
            image = replace(_HOST.image, root=Path(name))
            with pytest.raises(SandboxError, match="could not be set up"):
                NamespaceSandbox(replace(_HOST, image=image))
        assert other.run(["true"], cwd="/").ok


def test_one_that_was_killed_is_replaced() -> None:
    waiting = expect(_HOST)
    os.kill(waiting, signal.SIGKILL)
    eventually(lambda: not set_up_ahead(), "the supervisor is gone")
    with NamespaceSandbox(_HOST) as sandbox:
        assert sandbox.run(["true"], cwd="/").ok
