"""A box that begins again in its own namespaces cannot be told from a new one."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import intercode
from intercode.core.errors import SandboxError, SandboxLostError
from intercode.core.types import Dataset, Task
from intercode.sandbox.namespace.launcher import Launcher
from intercode.sandbox.namespace.sandbox import NamespaceSandbox
from intercode.sandbox.supervisor.client import SupervisedSandbox
from support import back_end, traces
from support.boxes import eventually, layer_of, open_box
from support.looks import look

pytestmark = pytest.mark.sandbox

_MESS = r"""
rm -rf /etc /root; chmod 700 /; touch /tmp/{1..50}; mkdir -p /new/deep; echo x > /dev/shm/x
(sleep 600 &) ; setsid sleep 600 & nohup sleep 600 & kill -STOP %1; ipcmk -M 4096; umask 077
trap '' TERM HUP; while :; do :; done & mkfifo /tmp/pipe; cat /tmp/pipe & echo > /dev/null
"""


def test_a_renewed_box_looks_like_a_new_one(tmp_path: Path) -> None:
    for name in ("data", "more", "most"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text("from a layer\n")
    layers = tuple(layer_of(tmp_path / name) for name in ("data", "more", "most"))
    with open_box(layers=layers) as new, open_box(layers=layers) as box:
        for _ in range(3):
            assert box.run(["cat", "/data"]).output == "from a layer\n"
            box.run(["/bin/bash", "-c", _MESS + "rm /data"], timeout=20)
            eventually(lambda: len(box.processes()) >= 4, "what the mess leaves runs")
            assert {"/new", "/data"} <= set(box.changed_paths())
            box.recycle()
            assert box.processes() == () and box.changes() == {}
            if not back_end.is_container():  # in one, process numbers go on
                assert box.run(["/bin/bash", "-c", "echo $$"]).output == "2\n", "counted anew"
        box.recycle()
        assert look(box) == look(new)


def test_what_was_started_from_outside_ends_with_the_renewal(box: SupervisedSandbox) -> None:
    process = box.spawn(["sleep", "600"])
    box.recycle()
    assert process.wait(5) == -9
    assert box.run(["echo", "again"]).output == "again\n"


NO_IPV6 = pytest.mark.namespace_only("a container without a network has no IPv6 either")


@pytest.mark.parametrize(
    "use",
    [
        "echo x > /dev/udp/127.0.0.1/9",
        "echo x > /dev/tcp/127.0.0.1/9",
        pytest.param("ping6 -c1 ::1", marks=NO_IPV6),
    ],
)
def test_a_used_network_is_not_handed_on(box: SupervisedSandbox, use: str) -> None:
    if "ping6" in use and not Path("/usr/bin/ping6").exists():
        use = "echo x > /dev/udp/::1/9"
    box.run(["/bin/bash", "-c", use])
    with pytest.raises(SandboxError, match="network"):
        box.recycle()


@pytest.mark.slow
def test_a_box_that_met_its_memory_limit_is_not_renewed() -> None:
    with open_box() as box:
        code = "a = bytearray(900 << 20); b = bytearray(900 << 20)"
        result = box.run(["python3", "-c", code], timeout=30)
        if not (back_end.is_container() or box.connection.handshake["cgroups"]):
            pytest.skip("only control groups end what takes too much memory at once")
        assert result.exit_code == -9
        with pytest.raises(SandboxError, match="limit"):
            box.recycle()


@pytest.mark.namespace_only("containers have no sealed layers")
def test_a_layered_box_is_not_renewed(box: SupervisedSandbox) -> None:
    layer = box.seal()
    with (
        NamespaceSandbox(box.spec, (), (layer,)) as upper,
        pytest.raises(SandboxError, match="plain"),
    ):
        upper.recycle()
    layer.release()


@pytest.mark.parametrize("deterministic", [False, True])
def test_episodes_in_renewed_boxes_are_as_in_new_ones(deterministic: bool) -> None:
    tasks = tuple(Task(f"m/{i}", "?", gold=f"echo {i} > /tmp/{i}; cat /tmp/*") for i in range(6))
    told = {}
    spoil = {i: f"rm /tmp/{i}" if i == 3 else "" for i in range(6)}
    go_on = back_end.is_container() and not deterministic  # process numbers, in a renewed one
    number = "" if go_on else "echo $$; "
    for reuse in (False, True):
        with intercode.make(
            "bash", dataset=Dataset("m", "bash", tasks), recycle=reuse, deterministic=deterministic
        ) as env:
            told[reuse] = []
            for i in (0, 1, 2, 3, 4, 5, 0, 1):
                env.reset(options={"task": i})
                shown = env.step(f"{tasks[i].gold}; {number}jobs; x=$x$x; sleep 100 & {spoil[i]}")
                assert ("hashes" in shown[4]) == deterministic
                told[reuse].append((shown[0], shown[4], env.submit()[1]))
            renewed = not deterministic if back_end.is_container() else reuse
            assert env.result_metadata()["sandboxes"] == ("recycled" if renewed else "new")
    assert told[True] == told[False] and len({reward for *_, reward in told[True]}) > 1


def test_a_closed_box_is_not_renewed(box: SupervisedSandbox) -> None:
    box.close()
    with pytest.raises((SandboxError, SandboxLostError)):
        box.recycle()


@pytest.mark.namespace_only("the end of a launcher, which is that of all boxes")
def test_boxes_that_died_while_they_waited_are_not_used() -> None:
    tasks = (Task("m/0", "?", gold="echo 0"),)
    with intercode.make("bash", dataset=Dataset("m", "bash", tasks), recycle=True) as env:
        for _ in range(3):
            env.reset()
            env.submit()
        supervisors = traces.family(os.getpid()).supervisors
        os.kill(Launcher.get().pid, signal.SIGKILL)
        assert traces.eventually(lambda: not traces.living(supervisors), 20) is not None
        env.reset()
        assert env.step("echo on")[0] == "on\n"
