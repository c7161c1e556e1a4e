"""A recycled sandbox cannot be distinguished from a new one."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import intercode
from intercode.core.types import Dataset, Task
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.errors import SandboxError, SandboxLostError
from intercode_sandbox.namespace.sandbox import NamespaceSandbox
from support import backend, traces
from support.sandbox_description import describe
from support.sandboxes import eventually, layer_of, open_test_sandbox

pytestmark = pytest.mark.sandbox

_MESS = r"""
rm -rf /etc /root; chmod 700 /; touch /tmp/{1..50}; mkdir -p /new/deep; echo x > /dev/shm/x
(sleep 600 &) ; setsid sleep 600 & nohup sleep 600 & kill -STOP %1; ipcmk -M 4096; umask 077
trap '' TERM HUP; while :; do :; done & mkfifo /tmp/pipe; cat /tmp/pipe & echo > /dev/null
"""


def test_a_recycled_sandbox_equals_a_new_one(tmp_path: Path) -> None:
    for name in ("data", "more", "most"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text("from a layer\n")
    layers = tuple(layer_of(tmp_path / name) for name in ("data", "more", "most"))
    mess = _MESS + "rm /data"
    if backend.is_container():  # directories in the merged /etc cannot be made again
        mess = mess.replace("rm -rf /etc", "rm -f /etc/*; rm -rf", 1)
    with open_test_sandbox(layers=layers) as new, open_test_sandbox(layers=layers) as sandbox:
        for _ in range(3):
            assert sandbox.run(["cat", "/data"]).output == "from a layer\n"
            sandbox.run(["/bin/bash", "-c", mess], timeout=20)
            eventually(lambda: len(sandbox.processes()) >= 4, "the background processes run")
            assert {"/new", "/data"} <= set(sandbox.changed_paths())
            sandbox.recycle()
            assert sandbox.processes() == () and sandbox.changes() == {}
            if not backend.is_container():  # process numbers of containers continue
                assert sandbox.run(["/bin/bash", "-c", "echo $$"]).output == "2\n", (
                    "process numbers start again"
                )
        sandbox.recycle()
        assert describe(sandbox) == describe(new)


def test_a_recycled_sandbox_shows_directories_as_a_new_one(treed: BaseSandbox) -> None:
    """A disk keeps a large directory large, and an overlay one that was changed apart."""
    show = ["/bin/bash", "-c", "stat -c '%n %b %s %h' / /tmp /root /data /data/*/"]
    first = treed.run(show).output
    for work in (
        "touch /data/new /tmp/new",
        "chmod 600 /data/dir/a",
        "rm -r /data/dir",
        "touch {/tmp,/data/empty}/some-file-with-a-long-name-{1..400}",
    ):
        assert treed.run(["/bin/bash", "-c", work]).ok
        treed.recycle()
        assert treed.run(show).output == first, work
        assert treed.changes() == {} and treed.read("/data/dir/a") == b"a\n"


def test_commands_end_when_the_sandbox_is_recycled(sandbox: BaseSandbox) -> None:
    process = sandbox.spawn(["sleep", "600"])
    sandbox.recycle()
    assert process.wait(60) == -9
    assert sandbox.run(["echo", "again"]).output == "again\n"


NO_IPV6 = pytest.mark.namespace_only("a container without a network has no IPv6 either")


@backend.not_in_chroot("it has no network")
@pytest.mark.parametrize(
    "use",
    [
        "echo x > /dev/udp/127.0.0.1/9",
        "echo x > /dev/tcp/127.0.0.1/9",
        pytest.param("ping6 -c1 ::1", marks=NO_IPV6),
    ],
)
def test_a_sandbox_that_used_its_network_is_not_recycled(sandbox: BaseSandbox, use: str) -> None:
    if "ping6" in use and not Path("/usr/bin/ping6").exists():
        use = "echo x > /dev/udp/::1/9"
    sandbox.run(["/bin/bash", "-c", use])
    with pytest.raises(SandboxError, match="network"):
        sandbox.recycle()


@pytest.mark.slow
def test_a_sandbox_over_its_memory_limit_is_not_recycled() -> None:
    with open_test_sandbox() as sandbox:
        code = "a = bytearray(900 << 20); b = bytearray(900 << 20)"
        result = sandbox.run(["python3", "-c", code], timeout=30)
        if not (backend.is_container() or sandbox.connection.handshake["cgroups"]):
            pytest.skip("only control groups end what takes too much memory at once")
        assert result.exit_code == -9
        with pytest.raises(SandboxError, match="limit"):
            sandbox.recycle()


@pytest.mark.namespace_only("containers have no sealed layers")
def test_a_sandbox_on_a_sealed_layer_is_not_recycled(sandbox: BaseSandbox) -> None:
    layer = sandbox.seal()
    with (
        NamespaceSandbox(sandbox.spec, (), (layer,)) as upper,
        pytest.raises(SandboxError, match="plain"),
    ):
        upper.recycle()
    layer.close()


@pytest.mark.parametrize("deterministic", [False, True])
def test_episodes_in_recycled_sandboxes_equal_those_in_new_ones(deterministic: bool) -> None:
    tasks = tuple(Task(f"m/{i}", "?", gold=f"echo {i} > /tmp/{i}; cat /tmp/*") for i in range(6))
    message = {}
    spoil = {i: f"rm /tmp/{i}" if i == 3 else "" for i in range(6)}
    # process numbers continue in a recycled container
    go_on = backend.is_chroot() or (backend.is_container() and not deterministic)
    number = "" if go_on else "echo $$; "
    for recycle in (False, True):
        with intercode.make(
            "bash",
            dataset=Dataset("m", "bash", tasks),
            recycle=recycle,
            deterministic=deterministic,
        ) as env:
            message[recycle] = []
            for i in (0, 1, 2, 3, 4, 5, 0, 1):
                env.reset(options={"task": i})
                shown = env.step(f"{tasks[i].gold}; {number}jobs; x=$x$x; sleep 100 & {spoil[i]}")
                assert ("hashes" in shown[4]) == deterministic
                message[recycle].append((shown[0], shown[4], env.submit()[1]))
            recycled = not deterministic if backend.is_container() else recycle
            assert env.result_metadata()["sandboxes"] == ("recycled" if recycled else "new")
    assert message[True] == message[False] and len({reward for *_, reward in message[True]}) > 1


def test_a_closed_sandbox_is_not_recycled(sandbox: BaseSandbox) -> None:
    sandbox.close()
    with pytest.raises((SandboxError, SandboxLostError)):
        sandbox.recycle()


@pytest.mark.namespace_only("the end of a launcher, which is that of all sandboxes")
def test_recycled_sandboxes_that_ended_are_not_used() -> None:
    tasks = (Task("m/0", "?", gold="echo 0"),)
    with intercode.make("bash", dataset=Dataset("m", "bash", tasks), recycle=True) as env:
        for _ in range(3):
            env.reset()
            env.submit()
        family = traces.family(os.getpid())
        for pid, _ in family.launchers:
            os.kill(pid, signal.SIGKILL)
        assert traces.eventually(lambda: not traces.living(family.supervisors), 60) is not None
        env.reset()
        assert env.step("echo on")[0] == "on\n"
