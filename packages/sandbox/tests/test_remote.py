"""Sandboxes on another machine, with a server on this one: the contract, tasks, and what is lost
when a connection ends."""

from __future__ import annotations

import errno
import os
import platform
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.environments.base.layers import task_layer
from intercode_sandbox import (
    Limits,
    Sandbox,
    SandboxSpec,
    architecture_of,
    open_sandbox,
    resolve_image,
    tier_of,
)
from intercode_sandbox.backends import attach_sandbox
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.errors import (
    MissingCapabilityError,
    SandboxLostError,
    SandboxUnavailableError,
    UsageError,
)
from intercode_sandbox.remote import connection, images
from intercode_sandbox.types import LayerSpec
from support.sandbox_server import ServerProcess, serving_sandboxes
from support.sandboxes import a_duration, eventually, running
from support.serving import free_port

pytestmark = [pytest.mark.sandbox, pytest.mark.namespace_only]


def test_the_tier_and_architecture_are_those_of_the_server(remote: ServerProcess) -> None:
    assert tier_of(remote.kind) == f"remote/{tier_of('namespace')}"
    assert architecture_of(remote.kind) == platform.machine()


@pytest.mark.parametrize("environment", ["bash", "python"])
def test_golds_of_starter_tasks_are_rewarded(remote: ServerProcess, environment: str) -> None:
    with intercode.make(environment, "starter", backend=remote.kind) as env:
        for task in range(6):
            env.reset(seed=1, options={"task": task})
            env.step(env.task.solution)
            assert env.score().value == 1, env.task.id


def test_all_output_arrives_before_the_end_of_a_program(remote: ServerProcess) -> None:
    """The program prints more than is sent at a time, and ends at once."""
    with BaseSandbox.open("host", remote.kind, limits=Limits(output=8 << 20)) as sandbox:
        for size in (1, 65536, 65537, 3_000_000):
            data, status, omitted = sandbox.run_bytes(f"head -c {size} /dev/zero; exit 3")
            assert (len(data), status, omitted) == (size, 3, 0)


def test_an_interpreter_is_forked_with_descriptors_for_the_fork(remote: ServerProcess) -> None:
    """The request for a fork, which carries a socket, follows another request at once."""
    with intercode.make("python", "starter", backend=remote.kind) as env:
        env.reset(options={"task": 0})
        env.step("values = []")
        env.step("values += [1]\nimport os\nos._exit(1)")
        assert env.step("values")[0].strip() == "[]"


def test_layers_are_sent_once_and_made_at_the_server(remote: ServerProcess, tmp_path: Path) -> None:
    files, script = tmp_path / "files", tmp_path / "setup.sh"
    (files / "data").mkdir(parents=True)
    (files / "data" / "sent").write_text("sent\n")
    script.write_text(f"mkdir -p /data\necho {tmp_path} > /data/made\n")
    image = resolve_image("host", remote.kind)
    sent = task_layer(LayerSpec("dir", files), image)
    made = task_layer(LayerSpec("script", script, shift_dates=True), image)
    with open_sandbox(SandboxSpec(image, (sent, made)), remote.kind) as sandbox:
        assert sandbox.run("cat /data/sent /data/made").output == f"sent\n{tmp_path}\n"
        assert sandbox.changes() == {}
        dates = sandbox.run("stat -c %Y /data/made; date +%s").output.split()
        assert 7000 < int(dates[1]) - int(dates[0]) < 11000


def test_a_layer_is_made_without_a_lock_in_a_cache_that_may_only_be_read(
    remote: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(images, "file_lock", refuse)
    image = images.resolve_image("host", remote.url)
    made = images.capture_layer(
        image, os.urandom(16).hex(), (), lambda made: made.write("/f", b"1"), "none", Limits()
    )
    with open_sandbox(SandboxSpec(image, (made,)), remote.kind) as sandbox:
        assert sandbox.read("/f") == b"1"


def test_what_the_server_cannot_do_is_refused(remote: ServerProcess) -> None:
    for name in ("dir:/etc", "tar:/etc/passwd", "recipe:../x", "dockerfile:/", "registry:x/y"):
        with pytest.raises(UsageError, match=r"only host, recipe:NAME and image:NAME"):
            resolve_image(name, remote.kind)
    with BaseSandbox.open("host", remote.kind) as sandbox:
        assert "seal" not in sandbox.capabilities
        with pytest.raises(MissingCapabilityError, match="to run a program on a terminal"):
            sandbox.spawn(["true"], on_terminal=True)
        with pytest.raises(FileNotFoundError):
            sandbox.read("/nonexistent")
        sandbox.write("/tmp/f", bytearray(b"12345"))
        assert sandbox.read("/tmp/f") == b"12345"
        with pytest.raises(OSError, match="larger"):
            sandbox.read("/tmp/f", 4)


def test_a_server_that_is_killed_costs_the_sandbox_and_not_the_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "_PAUSES", (0.1, 0.1))
    port = free_port()
    with serving_sandboxes(port=port) as first:
        sandbox = BaseSandbox.open("host", first.kind)
        process = sandbox.spawn(["sleep", "600"])
        first.process.kill()
        first.process.wait()
        with pytest.raises(SandboxLostError, match=first.url):
            process.wait(30)
        assert sandbox.is_lost
        with pytest.raises(SandboxLostError, match=first.url):
            sandbox.run("true")
        sandbox.close()
        with serving_sandboxes(port=port) as second:
            assert second.url == first.url
            with BaseSandbox.open("host", second.kind) as other:
                assert other.run("echo again").output == "again\n"
    with pytest.raises(SandboxUnavailableError, match=first.url):
        BaseSandbox.open("host", first.kind)


def test_the_sandboxes_of_a_client_that_is_killed_end(remote: ServerProcess) -> None:
    duration = a_duration()
    code = (
        "import sys; from intercode_sandbox.contract import BaseSandbox\n"
        f"sandbox = BaseSandbox.open('host', {remote.kind!r})\n"
        f"process = sandbox.spawn(['sleep', '{duration}'])\n"
        "print('ready', flush=True); process.wait()\n"
    )
    client = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None and client.stdout.readline() == "ready\n"
    eventually(lambda: bool(running(duration)), "the client's program runs")
    client.send_signal(signal.SIGKILL)
    client.wait()
    eventually(lambda: not running(duration), "the client's sandbox has ended")


def test_a_detached_sandbox_is_attached_by_its_id(remote: ServerProcess) -> None:
    code = f"""
from intercode_sandbox import Limits, Sandbox, SandboxLostError
sandbox = Sandbox("host", backend={remote.kind!r}, env={{"A": "b"}}, limits=Limits(processes=50))
sandbox.run("sleep 600 > /dev/null 2>&1 & echo 1 > /tmp/f")
identifier = sandbox.detach()
assert sandbox.is_lost
try:
    sandbox.run("true")
except SandboxLostError as error:
    assert f"Sandbox.attach('{{identifier}}'" in str(error)
    print(identifier)
"""
    owner = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    identifier = owner.stdout.strip()
    with Sandbox.attach(identifier, remote.kind, secrets={"KEY": "s3cret-value"}) as later:
        assert later.read("/tmp/f") == b"1\n"
        assert later.run("echo $A $KEY").stdout == "b [secret KEY]\n"
        assert later.limits.processes == 50 and later.image == "host"
        assert later.run("sleep 60", timeout=0.3).timed_out
        assert list(later.processes().values()) == ["sleep"], "what an earlier owner has started"
    with pytest.raises(SandboxLostError, match="no sandbox is detached with this id"):
        Sandbox.attach(identifier, remote.kind)
    with Sandbox() as local, pytest.raises(MissingCapabilityError, match="intercode-sandbox serve"):
        local.detach()
    with pytest.raises(UsageError, match="use remote:URL"):
        Sandbox.attach(identifier, "namespace")


def _interrupt_after(monkeypatch: pytest.MonkeyPatch, operation: str, remote: str) -> None:
    """Raise KeyboardInterrupt once, when the answer to this request has arrived."""
    found = connection.connect(remote)
    real = found.request

    def request(name: str, *values: Any, **arguments: Any) -> Any:
        answer = real(name, *values, **arguments)
        if name == operation:
            monkeypatch.undo()
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr(found, "request", request)


def test_an_interrupted_detach_or_attach_loses_no_sandbox(
    remote: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = Sandbox("host", backend=remote.kind)
    sandbox.write("/tmp/f", "1")
    process = sandbox.base.spawn(["/bin/sleep", "300"])
    _interrupt_after(monkeypatch, "detach", remote.url)
    with pytest.raises(KeyboardInterrupt):
        sandbox.detach()
    with pytest.raises(SandboxLostError):
        process.wait(10)
    sandbox.kill(process.pid)
    assert sandbox.read("/tmp/f") == b"1"
    identifier = sandbox.detach()
    _interrupt_after(monkeypatch, "attach", remote.url)
    with pytest.raises(KeyboardInterrupt):
        Sandbox.attach(identifier, remote.kind)
    with Sandbox.attach(identifier, remote.kind) as later:
        assert later.read("/tmp/f") == b"1"


def test_an_attached_sandbox_has_its_own_image_and_layers_whatever_their_names_mean_now(
    remote: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "setup.sh"
    script.write_text("echo 1 > /made\n")
    image = resolve_image("host", remote.kind)
    layer = task_layer(LayerSpec("script", script), image)
    first = open_sandbox(SandboxSpec(image, (layer,)), remote.kind)
    identifier = first.detach()
    monkeypatch.delattr(images, "resolve_image")
    with attach_sandbox(identifier, remote.kind) as later:
        assert later.spec == first.spec
        with open_sandbox(later.spec, remote.kind) as other:
            assert other.read("/made") == b"1\n"


def _is_checkpointed(sandbox: BaseSandbox, pid: int) -> bool:
    try:
        sandbox.checkpoint(pid, [0])
    except OSError as e:
        if e.errno != errno.EBUSY:  # the program does not wait yet
            raise
        return False
    return True


def test_a_detached_sandbox_keeps_no_checkpoint(remote: ServerProcess) -> None:
    reader, writer = os.pipe()
    sandbox = BaseSandbox.open("host", remote.kind)
    for _ in range(2):
        process = sandbox.spawn(["/bin/sleep", "300"], fds={0: reader})
        eventually(partial(_is_checkpointed, sandbox, process.pid), "a checkpoint is made")
        sandbox = attach_sandbox(sandbox.detach(), remote.kind)
    sandbox.close()
    os.close(reader)
    os.close(writer)


def test_a_forked_child_has_a_connection_of_its_own(remote: ServerProcess) -> None:
    with BaseSandbox.open("host", remote.kind) as sandbox:
        child = os.fork()
        if not child:
            with BaseSandbox.open("host", remote.kind) as other:
                works = other.run("echo child").output == "child\n"
                os._exit(0 if works and sandbox.is_lost else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert sandbox.run("echo parent").output == "parent\n"


def test_a_client_needs_nothing_that_only_linux_has(remote: ServerProcess) -> None:
    code = (
        "import os, signal, socket\n"
        "for module, names in {os: ('memfd_create', 'pidfd_open', 'listxattr', 'getxattr'),\n"
        "    signal: ('SIGRTMAX',), socket: ('MSG_NOSIGNAL', 'MSG_CMSG_CLOEXEC')}.items():\n"
        "    for name in names: delattr(module, name)\n"
        "import intercode\n"
        "for environment in ('bash', 'python'):\n"
        f"    with intercode.make(environment, 'starter', backend={remote.kind!r}) as env:\n"
        "        env.reset(options={'task': 0})\n"
        "        env.timeout, code = 1, 'sleep 60' if environment == 'bash' else 'while 1: 0'\n"
        "        assert env.execute(code).timed_out\n"
        "        env.timeout = 60\n"
        "        env.execute(env.task.solution)\n"
        "        assert env.score().value == 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
