"""The system calls of a sandbox are those of a list: all others are refused, also unknown ones."""

from __future__ import annotations

import errno
import platform

import pytest

from intercode_sandbox.supervisor.runtime import syscall_numbers
from support.sandboxes import open_test_sandbox

pytestmark = pytest.mark.sandbox
_PROBES = range(335, 337)
"""uretprobe and uprobe, which the kernel passes by every filter: they end a caller that the kernel
has not sent there."""
_TRY = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
for number in map(int, sys.argv[1:]):
    ctypes.set_errno(0)
    print(number, libc.syscall(number, -1, 0, 0, 0, 0, 0), ctypes.get_errno(), flush=True)
"""


@pytest.mark.skipif(
    platform.machine() not in syscall_numbers.MACHINES, reason="no list for this machine"
)
def test_every_call_beyond_the_list_is_refused() -> None:
    machine = platform.machine()
    permitted = {
        *syscall_numbers.allowed_calls(machine).values(),
        *syscall_numbers.checked_calls(machine).values(),
    }
    forbidden = set(syscall_numbers.forbidden_calls(machine).values())
    numbers = [str(n) for n in range(600) if n not in permitted and n not in _PROBES]
    with open_test_sandbox() as sandbox:
        done = sandbox.run(["python3", "-c", _TRY, *numbers], timeout=30)
    answers = [tuple(map(int, line.split())) for line in done.output.splitlines()]
    assert [str(number) for number, _, _ in answers] == numbers
    for number, result, error in answers:
        expected = errno.EPERM if number in forbidden else errno.ENOSYS
        assert (result, error) == (-1, expected), f"call {number}"
