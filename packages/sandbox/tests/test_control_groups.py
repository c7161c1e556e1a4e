"""One control group per sandbox: with its limits, invisible inside, and removed with the
sandbox."""

from __future__ import annotations

import errno
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from intercode_sandbox import Limits, Sandbox, SandboxSpec, images, open_sandbox
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.namespace.launcher import Launcher
from intercode_sandbox.namespace.sandbox import NamespaceSandbox
from intercode_sandbox.supervisor.control_group import ControlGroup
from intercode_sandbox.supervisor.runtime import cgroups
from intercode_sandbox.supervisor.runtime.cgroups import CgroupAllocator, remove_directories
from support.sandboxes import eventually, number_on_machine
from support.shells import shell

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.namespace_only("control groups that the launcher makes; an engine makes its own"),
]
MIB = 1 << 20


def group_of(sandbox: BaseSandbox) -> dict[str, str]:
    """The directories of a sandbox's group, found on the host through a process in it."""
    assert isinstance(sandbox, NamespaceSandbox)
    process = sandbox.spawn(["sleep", "60"])
    return cgroups.find_groups(
        Path("/proc/self/mountinfo").read_text(),
        Path(f"/proc/{number_on_machine(process)}/cgroup").read_text(),
    )


def own_group(sandbox: BaseSandbox) -> Path:
    found = group_of(sandbox)
    return Path(found["memory"] if "memory" in found else found[""])


def test_a_sandbox_has_a_group_with_its_limits_that_is_empty_afterwards() -> None:
    with shell("namespace/1", memory=100 * MIB, disk=50 * MIB, processes=77) as (sandbox, _):
        found = group_of(sandbox)
        v1 = "memory" in found
        memory = (
            Path(found["memory"], "memory.limit_in_bytes")
            if v1
            else (Path(found[""], "memory.max"))
        )
        assert int(memory.read_text()) == (100 + 50 + 65) * MIB
        assert Path(found["pids" if v1 else ""], "pids.max").read_text() == "77\n"
    inside = memory.with_name("cgroup.procs")
    eventually(lambda: not members(inside), "the group is empty")


def test_all_processes_together_use_only_the_processors_of_the_limit() -> None:
    busy = "for i in 1 2 3; do timeout 1 sh -c 'while :; do :; done' & done; wait; times"
    with Sandbox("host", backend="namespace/1", limits=Limits(cpus=0.2)) as sandbox:
        result = sandbox.run(busy)
    minutes, seconds = re.findall(r"(\d+)m([\d.]+)s", result.stdout)[2]  # of the children
    assert int(minutes) == 0 and float(seconds) <= 0.2 * result.duration + 0.1
    with Sandbox("host", backend="namespace/1") as later:  # it may have the group of the other
        assert isinstance(later.base, NamespaceSandbox)
        group = later.base.connection.handshake["cgroups"]
        quota = Path(group.get("cpu", ""), "cpu.cfs_quota_us")
        found = quota if "memory" in group else Path(group[""], "cpu.max")
        assert found.read_text().split()[0] in ("-1", "max")


def test_the_result_of_a_command_says_that_the_group_refused_a_process() -> None:
    with Sandbox("host", backend="namespace/1", limits=Limits(processes=12)) as sandbox:
        result = sandbox.run("for i in $(seq 20); do sleep 9 & done")
        assert not result.ok and result.limit_exceeded == "processes", result


def members(processes: Path) -> str:
    """Return the ids of a group's processes; empty if the group has been removed."""
    try:
        return processes.read_text()
    except OSError as e:
        assert e.errno in (errno.ENOENT, errno.ENODEV)
        return ""


def test_the_memory_of_the_supervisor_is_not_that_of_its_sandbox() -> None:
    with shell("namespace/1") as (sandbox, _):
        assert isinstance(sandbox, NamespaceSandbox)
        with sandbox.fork() as copy:
            for opened in (sandbox, copy):
                inside = (own_group(opened) / "cgroup.procs").read_text().split()
                assert str(opened.supervisor_pid) not in inside
                assert len(inside) >= 2, "PID 1 and the command"


def test_groups_do_not_accumulate() -> None:
    with shell("namespace/1") as (sandbox, _):
        assert isinstance(sandbox, NamespaceSandbox)
        pid = Launcher.get().pid
        home = own_group(sandbox).parent
    assert home.name.startswith("intercode-")

    def count() -> int:
        return len([p for p in home.iterdir() if f".{pid}." in p.name])

    before = count()  # other tests of this process may have open sandboxes
    for _ in range(12):
        with shell("namespace/1"):
            pass
    eventually(
        lambda: count() <= before + 8,
        "there are groups for supervisors that wait, the launcher's next, and four that were kept",
    )


FORKS = """
import os, time
for _ in range(50):
    if os.fork() == 0:
        time.sleep(600)
"""


def test_a_group_with_an_exceeded_limit_is_not_used_again() -> None:
    with shell("namespace/1", processes=20) as (sandbox, session):
        result = session.run(f"python3 -c {shlex.quote(FORKS)}", 60)
        assert "unavailable" in result.observation, result
        group = own_group(sandbox)
    eventually(lambda: not group.exists(), "it is removed")


@pytest.mark.parametrize("network", ["none", "host"])
def test_a_sandbox_does_not_see_its_group(network: str) -> None:
    spec = SandboxSpec(images.resolve("host"), network=network)  # type: ignore[arg-type]
    with open_sandbox(spec) as sandbox:
        shown = sandbox.run(["cat", "/proc/self/cgroup", "/proc/1/cgroup"]).output
        assert "intercode" not in shown and shown.count(":/\n") == len(shown.splitlines())
        assert sandbox.run(["ls", "-A", "/sys/fs/cgroup"]).output == ""
        assert not sandbox.run(["sh", "-c", "mkdir /sys/fs/cgroup/x"]).ok


OWNER = """
import sys, time
from intercode_sandbox import images
from intercode_sandbox import SandboxSpec, open_sandbox
from intercode_sandbox.namespace.launcher import Launcher
sandboxes = [open_sandbox(SandboxSpec(images.resolve("host"))) for _ in range(5)]
sandboxes[0].spawn(["sleep", "100"])
print(Launcher.get().pid, *Launcher.get().cgroup_directories, flush=True)
time.sleep(100)
"""


@pytest.mark.parametrize("victim", ["owner", "launcher"])
def test_groups_are_removed_when_their_owner_or_launcher_is_killed(victim: str) -> None:
    with shell("namespace/1"):
        pass
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    try:
        assert owner.stdout is not None
        pid, *homes = owner.stdout.readline().split()

        def left() -> list[str]:
            return [name for home in homes for name in os.listdir(home) if f".{pid}." in name]

        names = left()
        assert homes and len(names) >= 5 * len(homes)
        if victim == "owner":
            owner.kill()
            eventually(lambda: not left(), "the launcher removes its groups")
            return
        os.kill(int(pid), signal.SIGKILL)
        eventually(lambda: _empty(homes, left()), "the sandboxes have ended")
        for home in homes:  # another launcher of this machine may have removed them by now
            for name in names:
                Path(home, name).mkdir(exist_ok=True)
        Launcher.stop()
        with shell("namespace/1"):  # the next launcher of any owner removes stale groups
            assert not left()
    finally:
        owner.kill()
        owner.communicate()


def _empty(homes: list[str], names: list[str]) -> bool:
    return not any(members(Path(home, name, "cgroup.procs")) for home in homes for name in names)


# ---------------------------------------------------------------------- version 2
def test_a_group_of_version_2_is_frozen_and_thawed() -> None:
    """Uses the kernel's version 2 hierarchy, which can freeze processes even if version 1 has the
    controllers."""
    top = cgroups.own_groups().get("")
    if top is None or not os.access(top, os.W_OK):
        pytest.skip("no writable control groups of version 2: mount cgroup2, run as root")
    folder = Path(top, f"intercode-test-{os.getpid()}")
    folder.mkdir()
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        (folder / "cgroup.procs").write_text(str(busy.pid))
        group = ControlGroup({"": str(folder)}, template=0)
        assert group.freeze()
        ticks = Path(f"/proc/{busy.pid}/stat").read_text().split()[13]
        time.sleep(0.1)
        assert Path(f"/proc/{busy.pid}/stat").read_text().split()[13] == ticks
        group.thaw()
        eventually(
            lambda: Path(f"/proc/{busy.pid}/stat").read_text().split()[13] != ticks, "it continues"
        )
        assert not ControlGroup({"": str(folder / "gone")}, template=0).freeze()
    finally:
        busy.kill()
        busy.wait()
        eventually(lambda: _removed(folder), "the group is empty")


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:
        return False
    return True


FILES = (
    "cgroup.procs",
    "cgroup.subtree_control",
    "memory.max",
    "memory.swap.max",
    "pids.max",
    "memory.events",
)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in which new directories get the files of version 2. These kernels have memory
    and pids in version 1, so the files have to be simulated."""
    make: Callable[..., None] = os.mkdir
    remove: Callable[..., None] = os.rmdir

    def mkdir(path: str) -> None:
        make(path)
        for name in FILES:
            Path(path, name).write_text("")

    def rmdir(path: str) -> None:
        for name in FILES:
            Path(path, name).unlink(missing_ok=True)
        remove(path)

    monkeypatch.setattr(os, "mkdir", mkdir)
    monkeypatch.setattr(os, "rmdir", rmdir)
    for name in FILES:
        (tmp_path / name).write_text("")
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    return tmp_path


def test_groups_of_version_2_are_delegated_limited_and_removed(tree: Path) -> None:
    groups = CgroupAllocator(os.geteuid(), (2, {"": str(tree)}))
    home = tree / f"intercode-{os.geteuid()}"
    assert home.stat().st_mode & 0o777 == 0o700, "other users cannot move processes of sandboxes"
    assert (tree / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"
    assert (home / "cgroup.subtree_control").read_text() == "+memory +pids"
    groups.enter_next()
    name = groups.take_current()
    groups.set_bounds(name, 5 * MIB, 9)
    first = home / name
    assert (first / "cgroup.procs").read_text() == "0", "the launcher went in"
    assert (first / "memory.max").read_text() == str(5 * MIB)
    assert (first / "memory.swap.max").read_text() == "0"
    assert (first / "pids.max").read_text() == "9"
    groups.enter_next()
    second = groups.take_current()
    assert second != name and (home / second / "pids.max").read_text() == "9", "as the last one"
    groups.set_bounds(second, 0, 0)
    assert (home / second / "memory.max").read_text() == "max"
    assert groups.remove(name) and groups.remove(name) and not first.exists()
    os.mkdir(home / "1.999999999.1.0")
    stale = f"{os.stat('/proc/self/ns/pid').st_ino}.999999999.1.0"
    os.mkdir(home / stale)
    groups.remove_stale()
    assert not (home / stale).exists() and (home / "1.999999999.1.0").exists(), "another pid space"
    assert groups.leave_current() == [] and groups.remove(second)
    assert {p.name for p in home.iterdir() if p.is_dir()} == {"idle", "1.999999999.1.0"}
    os.rmdir(home / "1.999999999.1.0")
    remove_directories([str(home)])
    assert not home.exists()


def test_events_are_read_from_both_versions(tmp_path: Path) -> None:
    for paths, file in (
        ({"memory": tmp_path, "pids": tmp_path}, "memory.oom_control"),
        ({"": tmp_path}, "memory.events"),
    ):
        group = ControlGroup({k: str(v) for k, v in paths.items()}, template=0)
        assert group.limit_exceeded() == ""
        (tmp_path / file).write_text("oom 3\noom_kill 2\n")
        assert group.limit_exceeded() == "memory" and group.limit_exceeded() == ""
        (tmp_path / file).write_text("oom 4\noom_kill 3\n")
        (tmp_path / "pids.events").write_text("max 1\n")
        assert group.limit_exceeded() == "memory" and group.limit_exceeded() == "", "the graver one"
        (tmp_path / "pids.events").write_text("max 5\n")
        assert group.limit_exceeded() == "processes" and group.limit_exceeded() == ""
        (tmp_path / "pids.events").unlink()
        assert group.limit_exceeded() == ""
