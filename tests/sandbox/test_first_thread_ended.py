"""A process whose first thread has ended looks like one that has ended, and has not."""

from __future__ import annotations

import os
import time

import pytest

from intercode.sandbox.supervisor.client import SupervisedSandbox
from support import back_end
from support.boxes import eventually
from support.shells import shell

pytestmark = pytest.mark.sandbox

_EXIT = {"x86_64": 60, "aarch64": 93}[os.uname().machine]  # of one thread
_CODE = f"""
import ctypes, os, threading, time
def work():
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


def _count(box: SupervisedSandbox) -> int:
    try:
        return int(box.read_file("/tmp/count"))
    except FileNotFoundError:
        return 0


def _goes_on(box: SupervisedSandbox) -> bool:
    before = _count(box)
    time.sleep(0.3)
    return _count(box) > before


def _begun(box: SupervisedSandbox) -> None:
    box.spawn(["python3", "-c", _COUNTS])
    eventually(lambda: _count(box) > 0, "the second thread writes")


def test_it_is_killed_with_what_ran_out_of_time(box: SupervisedSandbox) -> None:
    mark = box.mark()
    _begun(box)
    box.kill_since(mark)
    assert box.processes() == () and not _goes_on(box)


def test_it_stands_still_where_all_do(box: SupervisedSandbox) -> None:
    _begun(box)
    box.connection.request("freeze", on=True)
    assert not _goes_on(box)
    box.connection.request("freeze", on=False)
    assert _goes_on(box)


def test_it_ends_with_the_renewal(box: SupervisedSandbox) -> None:
    box.run(["/bin/bash", "-c", f'setsid python3 -c "{_COUNTS}" >/dev/null 2>&1 &'])
    eventually(lambda: _count(box) > 0, "the second thread writes")
    assert [name.split()[0] for name in box.processes()] == ["python3"]
    box.recycle()
    look = box.run(["bash", "-c", "cat /proc/[0-9]*/comm"]).output
    assert box.processes() == () and "python3" not in look


@pytest.mark.parametrize("tier", back_end.tiers())
def test_its_memory_counts(tier: str) -> None:
    with shell(tier, memory=128 << 20, disk=16 << 20) as (_, session):
        code = _CODE.format(then="x = bytearray(600 << 20); time.sleep(20)")
        result = session.run(f'python3 -c "{code}"', 15)
        assert not result.timed_out
        assert "[killed: over the memory limit of 128 MiB]" in result.observation


@pytest.mark.parametrize("tier", back_end.tiers())
def test_so_does_its_processor_time(tier: str) -> None:
    with shell(tier, cpu_seconds=0.4) as (_, session):
        code = _CODE.format(then="while True: pass")
        result = session.run(f'python3 -c "{code}"', 15)
        assert not result.timed_out
        assert "[killed: over the limit of 0.4 s of processor time]" in result.note
