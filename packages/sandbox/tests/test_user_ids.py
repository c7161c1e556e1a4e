"""A user id for each sandbox, where root starts the launcher: who has which, and that files pass
between sandboxes with different ones."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from intercode_sandbox import SandboxSpec, images
from intercode_sandbox.determinism import Determinism
from intercode_sandbox.namespace.launcher import Launcher
from intercode_sandbox.namespace.open import open_strongest
from intercode_sandbox.namespace.sandbox import NamespaceSandbox
from intercode_sandbox.platforms.paths import sandbox_uid
from intercode_sandbox.supervisor.runtime import rights, user_ids
from intercode_sandbox.supervisor.runtime.user_ids import FIRST_ID, UserIds, hold_namespace
from intercode_sandbox.types import Layer
from support.sandboxes import eventually, layer_of, number_on_machine

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.namespace_only("an engine gives user ids to containers"),
]

_HOST = SandboxSpec(images.resolve("host"))


@pytest.fixture(autouse=True)
def _need_user_ids() -> None:
    if why := Launcher.get().user_ids_error:
        pytest.skip(f"all sandboxes have one user id: {why}")


@pytest.fixture
def first() -> Iterator[NamespaceSandbox]:
    with NamespaceSandbox(_HOST) as opened:
        yield opened


@pytest.fixture
def second() -> Iterator[NamespaceSandbox]:
    with NamespaceSandbox(_HOST) as opened:
        yield opened


def status_of(pid: int, key: str) -> list[str]:
    """The values of a line of /proc/PID/status."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split()[1:] for line in lines if line.startswith(f"{key}:"))


def test_processes_have_the_ids_of_their_sandbox(
    first: NamespaceSandbox, second: NamespaceSandbox
) -> None:
    assert len({first.user_id, second.user_id, sandbox_uid()}) == 3
    for sandbox in (first, second):
        process = sandbox.spawn(["sleep", "60"])
        for pid in (sandbox.supervisor_pid, number_on_machine(process)):
            assert status_of(pid, "Uid") == status_of(pid, "Gid") == [str(sandbox.user_id)] * 4
            assert status_of(pid, "Groups") == []
        assert sandbox.run(["id"]).output == "uid=0(root) gid=0(root) groups=0(root)\n"


def test_the_processes_of_one_sandbox_are_out_of_reach_of_another(
    first: NamespaceSandbox, second: NamespaceSandbox
) -> None:
    """Even if it could name them: the kernel compares the user ids."""
    number = str(number_on_machine(first.spawn(["sleep", "60"])))
    for command in (["kill", "-0", number], ["prlimit", f"--pid={number}"]):
        for user, reached in ((first.user_id, True), (second.user_id, False)):
            done = subprocess.run(command, user=user, group=user, capture_output=True, check=False)
            assert (done.returncode == 0) is reached, (command, done)


def test_the_launcher_keeps_only_what_user_ids_take() -> None:
    kept = sum(1 << capability for capability in rights._KEPT_CAPABILITIES)
    for name in ("CapPrm", "CapEff", "CapBnd"):
        assert int(status_of(Launcher.get().pid, name)[0], 16) == kept


def test_ids_are_used_again_and_never_by_two_sandboxes(first: NamespaceSandbox) -> None:
    seen: list[int] = []

    def has_come_back() -> bool:
        with NamespaceSandbox(_HOST) as sandbox, NamespaceSandbox(_HOST) as other:
            ids = [sandbox.user_id, other.user_id]
            assert len({*ids, first.user_id}) == 3
            again = bool(set(ids) & set(seen))
            seen.extend(ids)
            return again

    eventually(has_come_back, "an id is used again")


def test_two_launchers_have_different_ids(first: NamespaceSandbox) -> None:
    code = (
        "from intercode_sandbox import SandboxSpec, images, open_sandbox\n"
        "spec = SandboxSpec(images.resolve('host'))\n"
        "print([open_sandbox(spec).user_id for _ in range(3)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        env={
            **os.environ,
            "PYTHONPATH": ":".join(sys.path),
        },
    )
    theirs = {int(number) for number in done.stdout.decode().strip("[]\n").split(",")}
    assert len(theirs) == 3 and first.user_id not in theirs


def test_blocks_of_ids_are_locked(tmp_path: Path) -> None:
    locks = tmp_path / "locks"
    ids = [UserIds(sandbox_uid(), str(locks)) for _ in range(2)]
    firsts = [each.take() for each in ids]
    assert len({number // 1024 for number in firsts}) == 2 and min(firsts) >= FIRST_ID
    ids[0].release(firsts[0])
    assert ids[0].take() == firsts[0], "its user namespaces exist already"
    locks.chmod(0o777)
    with pytest.raises(PermissionError, match="of root alone"):
        UserIds(sandbox_uid(), str(locks))


def test_an_id_with_processes_is_not_given() -> None:
    ids = UserIds(sandbox_uid())  # a block that no launcher of this machine uses
    last = ids.take()
    ids.release(last)
    with subprocess.Popen(["sleep", "60"], user=last, group=last) as ending:
        assert ids.take() != last
        ending.kill()
        ending.wait()
    assert ids.take() == last


def test_a_user_namespace_is_made_by_the_next_process_if_one_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids: list[int] = []

    def hold_and_note(connection: socket.socket) -> int:
        pids.append(hold_namespace(connection))
        return pids[-1]

    monkeypatch.setattr(user_ids, "hold_namespace", hold_and_note)
    ids = UserIds(sandbox_uid(), str(tmp_path / "locks"))
    ids.start_holders_with(lambda _: 0)
    made = ids._create_user_namespace(0, FIRST_ID, 1)
    try:
        assert os.fstat(made).st_ino != os.stat("/proc/self/ns/user").st_ino
    finally:
        os.close(made)
    assert os.waitpid(pids[0], 0) == (pids[0], 0), "the caller collects the process"


def test_a_process_with_a_user_namespace_ends_with_a_killed_launcher() -> None:
    code = (
        "import os, socket\n"
        "from intercode_sandbox.supervisor.runtime.user_ids import hold_namespace\n"
        "ours, theirs = socket.socketpair()\n"
        "print(hold_namespace(theirs), ours.recv(99).decode(), flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": ":".join(sys.path),
        },
    )
    pid, answer = done.stdout.decode().split()
    assert (done.returncode, answer) == (-9, "created"), done.stderr
    eventually(lambda: not Path(f"/proc/{pid}").exists(), "the process has ended")


def test_files_of_layers_belong_to_every_sandbox(first: NamespaceSandbox, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "file").write_text("of the layer\n")
    (tmp_path / "secret" / "file").chmod(0o600)
    (tmp_path / "secret").chmod(0o700)
    layer = layer_of(tmp_path)
    for _ in range(2):
        with NamespaceSandbox(replace(_HOST, layers=(layer,))) as sandbox:
            command = "cat /secret/file && echo more >> /secret/file && chmod 640 /secret/file"
            assert sandbox.run(["sh", "-c", command]).output == "of the layer\n"
            assert sandbox.run(["stat", "-c", "%u %g %a", "/secret/file"]).output == "0 0 640\n"
            assert set(sandbox.changes()) == {"/secret/file"}


def test_files_pass_between_sandboxes(
    first: NamespaceSandbox, second: NamespaceSandbox, tmp_path: Path
) -> None:
    make = "mkdir -m 700 /srv/a; echo x > /srv/a/f; chmod 600 /srv/a/f; rm -r /mnt; mkdir /mnt"
    look = ["sh", "-c", "cat /srv/a/f; stat -c '%u %g %a' /srv/a /srv/a/f; ls /mnt"]
    expected = "x\n0 0 700\n0 0 600\n"
    assert first.run(["sh", "-c", make]).ok
    with first.fork() as copy:
        assert copy.user_id != first.user_id and copy.run(look).output == expected
        second.replace_files(copy)
    assert second.run(look).output == expected
    (tmp_path / "saved").mkdir()
    second.save(tmp_path / "saved")
    for path in (tmp_path / "saved", *(tmp_path / "saved").rglob("*")):
        os.lchown(path, sandbox_uid(), sandbox_uid())
    with open_strongest(_HOST, tmp_path / "saved") as opened:
        assert opened.user_id == sandbox_uid(), "its files on disk belong to the shared id"
        assert opened.run(look).output == expected
        with opened.fork() as copy:
            assert copy.user_id != sandbox_uid() and copy.run(look).output == expected
        second.recycle()
        second.replace_files(opened)
        assert second.run(look).output == expected
    second.recycle()
    second.replace_files(tmp_path / "saved")
    assert second.run(look).output == expected


def test_a_sealed_layer_shows_its_files_to_others(first: NamespaceSandbox) -> None:
    assert first.run(["sh", "-c", "mkdir -m 700 /srv/a; echo x > /srv/a/f; rm -r /mnt"]).ok
    sealed = first.seal()
    with sealed.open() as one, sealed.open() as other:
        assert len({one.user_id, other.user_id, first.user_id}) == 3
        assert one.run(["sh", "-c", "echo y >> /srv/a/f; cat /srv/a/f"]).output == "x\ny\n"
        assert (
            other.run(["sh", "-c", "cat /srv/a/f; [ -e /mnt ] || echo gone"]).output == "x\ngone\n"
        )
        above = one.seal()
        with above.open() as third, third.fork() as fourth:
            assert fourth.run(["cat", "/srv/a/f"]).output == "x\ny\n"
        above.close()
    sealed.close()


def test_a_deterministic_sandbox_has_the_shared_id() -> None:
    with NamespaceSandbox(replace(_HOST, determinism=Determinism())) as sandbox:
        assert sandbox.user_id == sandbox_uid()


def test_layers_that_cannot_be_mapped_are_used_with_the_shared_id() -> None:
    """Not every file system can be mounted with other owners: /sys cannot."""
    layer = Layer(Path("/sys/class"), "sha256:0")
    with NamespaceSandbox(replace(_HOST, layers=(layer,))) as sandbox:
        assert sandbox.user_id == sandbox_uid()
        assert sandbox.run(["true"]).ok
    with NamespaceSandbox(_HOST) as sandbox:
        assert sandbox.user_id != sandbox_uid(), "only that layer is at fault"
