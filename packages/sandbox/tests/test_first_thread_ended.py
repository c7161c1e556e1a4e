"""A process whose first thread has ended looks like a zombie but still runs."""

from __future__ import annotations

import os
import time

import pytest

from intercode_sandbox.contract import BaseSandbox
from support import backend
from support.sandboxes import eventually
from support.shells import shell

pytestmark = pytest.mark.sandbox

# number of the system call that ends one thread
_EXIT = {"x86_64": 60, "aarch64": 93}[os.uname().machine]
_CODE = f"""
import ctypes, os, threading, time
def work():
    if not os.path.exists('/proc/self'):  # below a changed root
        time.sleep(0.2)
    else:
        with open('/proc/self/stat') as file:
            while file.read().rpartition(')')[2].split()[0] != 'Z': file.seek(0)
    {{then}}
threading.Thread(target=work).start()
ctypes.CDLL(None).syscall(ctypes.c_long({_EXIT}), 0)
"""
_COUNTS = _CODE.format(
    then="""
    for count in range(1, 100000):
        with open('/tmp/new', 'w') as file: file.write(str(count))
        os.rename('/tmp/new', '/tmp/count')
        time.sleep(0.02)
"""
)


def _count(sandbox: BaseSandbox) -> int:
    try:
        return int(sandbox.read("/tmp/count"))
    except FileNotFoundError:
        return 0


def _goes_on(sandbox: BaseSandbox) -> bool:
    before = _count(sandbox)
    time.sleep(0.3)
    return _count(sandbox) > before


def _begun(sandbox: BaseSandbox) -> None:
    sandbox.spawn(["python3", "-c", _COUNTS])
    eventually(lambda: _count(sandbox) > 0, "the second thread writes")


def test_it_is_killed_at_the_timeout(sandbox: BaseSandbox) -> None:
    mark = sandbox.mark()
    _begun(sandbox)
    sandbox.kill_since(mark)
    assert sandbox.processes() == () and not _goes_on(sandbox)


def test_it_is_paused_with_the_others(sandbox: BaseSandbox) -> None:
    _begun(sandbox)
    sandbox.connection.request("freeze", on=True)
    assert not _goes_on(sandbox)
    sandbox.connection.request("freeze", on=False)
    eventually(lambda: _goes_on(sandbox), "it goes on")


def test_it_ends_when_the_sandbox_is_recycled(sandbox: BaseSandbox) -> None:
    sandbox.run(["/bin/bash", "-c", f'setsid python3 -c "{_COUNTS}" >/dev/null 2>&1 &'])
    eventually(lambda: _count(sandbox) > 0, "the second thread writes")
    assert [name.split()[0] for name in sandbox.processes()] == ["python3"]
    sandbox.recycle()
    check = sandbox.run(["bash", "-c", "cat /proc/[0-9]*/comm"]).output
    assert sandbox.processes() == () and "python3" not in check


@pytest.mark.parametrize("tier", backend.tiers())
def test_its_memory_counts(tier: str) -> None:
    with shell(tier, memory=128 << 20, disk=16 << 20) as (_, session):
        code = _CODE.format(then="x = bytearray(600 << 20); time.sleep(120)")
        result = session.run(f'python3 -c "{code}"', 60)
        assert not result.timed_out
        assert "[killed: over the memory limit of 128 MiB]" in result.observation


@pytest.mark.parametrize("tier", backend.tiers())
def test_its_processor_time_counts(tier: str) -> None:
    with shell(tier, cpu_seconds=0.4) as (_, session):
        code = _CODE.format(then="while True: pass")
        result = session.run(f'python3 -c "{code}"', 60)
        assert not result.timed_out
        assert "[killed: over the limit of 0.4 s of processor time]" in result.note
