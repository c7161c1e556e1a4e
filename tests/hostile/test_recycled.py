"""Nothing that hostile cases leave in a sandbox survives its recycling."""

from __future__ import annotations

import pytest

from hostile.__main__ import sampled
from hostile.cases import Case, all_cases
from hostile.planted import Planted
from hostile.trial import BACKENDS
from hostile.visible_state import DAMAGE, read_state
from intercode.core.errors import SandboxError, SandboxLostError
from intercode.sessions.bash.persistent import BashSession
from intercode_sandbox.contract import BaseSandbox
from support import backend
from support.sandbox_description import describe
from support.sandboxes import open_test_sandbox

pytestmark = pytest.mark.sandbox


def _suffer(sandbox: BaseSandbox, case: Case, planted: Planted) -> None:
    session = BashSession(sandbox)
    for action in case.actions:
        session.run(planted.fill(action), case.limit)
    session.close()


def test_a_recycled_sandbox_shows_nothing_that_was_damaged() -> None:
    """Everything that the kernel shows of processes, namespaces, devices, terminals and sockets is
    as in a new sandbox. What may differ is listed in visible_state.py."""
    with open_test_sandbox() as new, open_test_sandbox() as sandbox:
        expected = read_state(new)
        assert len(expected) > 1000
        for _ in range(2):
            damaged = sandbox.run(["python3", "-c", DAMAGE], timeout=30)
            assert damaged.timed_out or damaged.ok, damaged
            sandbox.recycle()
            found = read_state(sandbox)
            paths = sorted(expected.keys() | found.keys())
            assert [
                (path, expected.get(path), found.get(path))
                for path in paths
                if expected.get(path) != found.get(path)
            ] == []


_LOWER_PRIORITY = """
import ctypes, os
libc = ctypes.CDLL(None)
try: os.setpriority(os.PRIO_USER, 0, 19)
except OSError: pass
libc.syscall(251 if os.uname().machine == 'x86_64' else 30, 3, os.getuid(), 3 << 13)
"""


def test_a_lowered_priority_does_not_reach_the_next_episode() -> None:
    shown = ["python3", "-c", "import os; print(os.getpriority(0, 0), os.getpriority(0, 1))"]
    with open_test_sandbox() as sandbox:
        expected = sandbox.run(shown).output
        sandbox.run(["python3", "-c", _LOWER_PRIORITY])
        try:
            sandbox.recycle()
        except SandboxError as e:  # PID 1 of a container is a process of the same user
            assert backend.is_container() and "priority" in str(e)
        else:
            assert sandbox.run(shown).output == expected


@pytest.mark.slow
def test_a_recycled_sandbox_is_clean_after_hostile_cases() -> None:
    open_test_sandbox().close()  # skips the test if there is no sandbox
    opens = BACKENDS[backend.chosen()]
    planted = Planted(opens)
    renewed = []
    with opens() as new:
        assert isinstance(new, BaseSandbox)
        expected = describe(new)
    for case in sampled(all_cases(), 40, seed=5):
        with opens() as sandbox:
            assert isinstance(sandbox, BaseSandbox)
            try:
                _suffer(sandbox, case, planted)
                sandbox.recycle()
            except (SandboxError, SandboxLostError):
                continue  # the sandbox refuses to be recycled and is not used again
            assert sandbox.changes() == {} and sandbox.processes() == (), case.name
            assert describe(sandbox) == expected, case.name
            renewed.append(case.name)
    planted.close()
    assert len(renewed) >= 25, renewed
