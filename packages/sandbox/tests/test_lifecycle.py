"""Sandboxes end in time and leave nothing behind."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from intercode.sessions.bash.persistent import BashSession
from intercode_sandbox.errors import SandboxError, SandboxLostError
from intercode_sandbox.namespace.launcher import Launcher
from intercode_sandbox.platforms.paths import cache_root
from intercode_sandbox.supervisor.connection import SupervisorConnection
from support import backend
from support.sandboxes import a_duration, eventually, open_test_sandbox, our_sandboxes, running

pytestmark = pytest.mark.sandbox

OWNER = """
import sys, time
from intercode_sandbox import images
from intercode_sandbox import SandboxSpec, open_sandbox
sandboxes = [open_sandbox(SandboxSpec(images.resolve("host"))) for _ in range(5)]
for sandbox in sandboxes:
    sandbox.spawn(["sleep", sys.argv[1]])
print("ready", flush=True)
time.sleep(600)
"""


def _mounts() -> set[str]:
    """The mounts of this machine, except those of other containers."""
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return {m for m in mounts if str(cache_root()) in m or not backend.is_container()}


def test_close_ends_processes_and_leaves_no_mount_and_no_file() -> None:
    stage = cache_root() / "stage"
    mounts = _mounts()
    mark = a_duration()
    earlier = our_sandboxes()  # such as those that wait for the garbage collector
    sandbox = open_test_sandbox()
    sandbox.spawn(["bash", "-c", f"trap '' TERM HUP; sleep {mark} & setsid sleep {mark} & wait"])
    eventually(lambda: len(running(mark)) == 2, "the two sleeps started")
    assert not list(stage.glob("*"))  # the stage is mounted in the sandbox's own namespace
    sandbox.close()
    sandbox.close()
    eventually(lambda: not running(mark), "no process left")
    eventually(lambda: _mounts() <= mounts, "no mount left")
    if backend.is_container():  # nor recycled ones, for which an engine takes some time
        eventually(lambda: our_sandboxes() <= earlier, "no container left", 60.0)
    with pytest.raises(SandboxLostError, match="closed"):
        sandbox.run(["true"])


def test_close_waits_no_longer_than_a_program_takes_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told about the end: without a time limit on answers, it would else wait for ever."""
    set_timeout = SupervisorConnection._set_timeout
    monkeypatch.setattr(
        SupervisorConnection, "_set_timeout", lambda self, socket, _: set_timeout(self, socket, 1e6)
    )
    mark = a_duration()
    sandbox = open_test_sandbox()
    sandbox.spawn(["sleep", mark])
    eventually(lambda: len(running(mark)) == 1, "the sleep started")
    sandbox.close(wait=True)
    assert not running(mark)


def test_a_sandbox_without_references_ends() -> None:
    mark = a_duration()
    sandbox = open_test_sandbox()
    process = sandbox.spawn(["sleep", mark])
    eventually(lambda: len(running(mark)) == 1, "the sleep started")
    del sandbox, process
    eventually(lambda: not running(mark), "no process left")


def test_an_owner_that_is_killed_leaves_nothing() -> None:
    mark = a_duration()
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, mark], stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert owner.stdout is not None and owner.stdout.readline() == b"ready\n"
        eventually(lambda: len(running(mark)) == 5 + 1, "five sleeps and their owner")
    finally:
        owner.kill()
        owner.wait()
        assert owner.stdout is not None
        owner.stdout.close()
    eventually(lambda: not running(mark), "no process left")


@pytest.mark.namespace_only("a launcher")
def test_a_killed_launcher_is_noticed_and_replaced() -> None:
    sandbox = open_test_sandbox()
    process = sandbox.spawn(["sleep", "600"])
    launcher = Launcher.get()._process
    launcher.send_signal(signal.SIGKILL)
    launcher.wait()
    with pytest.raises(SandboxLostError):
        process.wait(20)
    with pytest.raises(SandboxLostError):
        sandbox.run(["true"])
    sandbox.close()
    with open_test_sandbox() as new:
        assert new.run(["echo", "new"]).output == "new\n"


@pytest.mark.namespace_only("a container does not need the cache")
def test_a_launcher_that_was_started_with_an_unreachable_cache_serves_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    Launcher.stop()
    with monkeypatch.context() as other:
        other.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
        Launcher.get()
    with open_test_sandbox() as sandbox:
        assert sandbox.run(["echo", "on"]).output == "on\n"


def test_only_the_sandbox_of_a_killed_supervisor_is_lost() -> None:
    with open_test_sandbox() as sandbox, open_test_sandbox() as other:
        mark = a_duration()
        process = sandbox.spawn(["sleep", mark])
        os.kill(sandbox.supervisor_pid, signal.SIGKILL)
        with pytest.raises(SandboxLostError):
            process.wait(20)
        with pytest.raises(SandboxError):
            sandbox.changes()
        assert other.run(["echo", "on"]).output == "on\n"


def test_a_forked_child_gets_a_launcher_of_its_own() -> None:
    with open_test_sandbox() as sandbox:
        parents = Launcher.get()._process.pid
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with open_test_sandbox() as own:
                    right = own.run(["echo", "child"]).output == "child\n"
                separate = backend.is_container() or Launcher.get()._process.pid != parents
                status = 0 if right and separate else 2
                Launcher.stop()
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert sandbox.run(["echo", "parent"]).output == "parent\n"
        assert Launcher.get()._process.pid == parents


@pytest.mark.namespace_only("a launcher")
def test_a_child_that_was_forked_while_a_thread_held_the_launcher_opens_a_sandbox() -> None:
    with Launcher._lock:
        child = os.fork()
        if child == 0:
            signal.alarm(120)  # ends the child if it waits for the lock
            with open_test_sandbox() as own:
                os._exit(own.run(["echo", "child"]).output != "child\n")
    assert os.waitpid(child, 0)[1] == 0


def test_close_ends_the_sandbox_although_a_forked_child_lives() -> None:
    mark = a_duration()
    sandbox = open_test_sandbox()
    sandbox.spawn(["sleep", mark])
    eventually(lambda: len(running(mark)) == 1, "the sleep started")
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    try:
        sandbox.close()
        eventually(lambda: not running(mark), "no process left")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_missing_layer_is_an_error_of_the_sandbox() -> None:
    from intercode_sandbox.types import Layer

    with pytest.raises(SandboxError, match="could not be set up"):
        open_test_sandbox(layers=(Layer(Path("/no/such/layer"), "x"),))


def test_an_owner_with_more_than_1024_descriptors() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip(f"needs a hard limit of 2048 open files, and it is {hard}")
    with open_test_sandbox() as sandbox, ExitStack() as held:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
        held.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(1100):
            held.callback(os.close, os.open("/dev/null", os.O_RDONLY))
        session = BashSession(sandbox)
        assert session.run("echo on", 60).output == "on\n"
        assert session.run("exit 3", 60).exit_code == 3
        assert sandbox.spawn(["true"]).wait(10) == 0
        session.close()
