"""Damage that an agent does to its own shell or interpreter is an observation, not a failure."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from intercode.core.errors import SandboxError
from intercode.sessions.base import Session
from intercode.sessions.bash.fresh import FreshShellSession
from intercode.sessions.bash.persistent import BashSession
from intercode.sessions.python.session import PythonSession
from intercode_sandbox import Limits
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.streams import BaseProcess
from support import backend
from support.sandboxes import open_test_sandbox
from support.shells import shell

pytestmark = pytest.mark.sandbox


_CROWD = """
import os
while True:
    try: os.fork()
    except OSError: open('/tmp/full', 'w').close()
"""


def _crowded(session: Session) -> None:
    """Start as many processes as the limit allows, and a new one whenever one ends."""
    session.run(f'python3 -c "{_CROWD}" >/dev/null 2>&1 & disown', 60)
    assert session.run("until [ -e /tmp/full ]; do :; done", 60).exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("tier", backend.tiers())
def test_jobs_that_take_all_processes_are_killed_for_a_new_shell(tier: str) -> None:
    with shell(tier, processes=40) as (sandbox, session):
        _crowded(session)
        for _ in range(20):  # a new shell may start before the next process does
            result = session.run("kill -9 $$", 60)
            assert "a new one was started" in result.note
            if "[killed: background processes that used up all 40 processes]" in result.note:
                break
        else:
            pytest.fail("no process was killed for a new shell")
        assert sandbox.processes() == ()
        again = session.run("echo on", 60)
        assert (again.output, again.note) == ("on\n", "")


def test_processes_of_the_owner_are_not_killed() -> None:
    with open_test_sandbox(limits=Limits(processes=40)) as sandbox:
        mine = sandbox.spawn(["sleep", "600"])
        session = BashSession(sandbox)
        _crowded(session)
        assert sandbox.run(["echo", "on"]).output == "on\n"
        assert sandbox.limit_exceeded() == "background" and sandbox.processes() == ()
        assert mine.wait(0) is None and session.run("echo on", 60).output == "on\n"


_WRAPPER = b'#!/bin/sh\nexec %s "$@"\n'
_IN_BASH = "printf garbage > /root/program; exit"
_IN_PYTHON = "import os\nopen('/root/program', 'w').write('garbage')\nos.kill(-1, 9)\nos._exit(3)"
_OPENS: list[tuple[bytes, Callable[[BaseSandbox], Session], str]] = [
    (b"/bin/bash", lambda sandbox: BashSession(sandbox, shell="/root/program"), _IN_BASH),
    (b"/bin/bash", lambda sandbox: FreshShellSession(sandbox, shell="/root/program"), _IN_BASH),
    (b"python3", lambda sandbox: PythonSession(sandbox, program="/root/program"), _IN_PYTHON),
]


@pytest.mark.parametrize(("real", "opens", "breaks"), _OPENS)
def test_a_program_broken_by_the_agent_is_an_observation(
    sandbox: BaseSandbox, real: bytes, opens: Callable[[BaseSandbox], Session], breaks: str
) -> None:
    sandbox.write("/root/program", _WRAPPER % real, 0o755)
    session = opens(sandbox)
    session.run(breaks, 60)
    result = session.run("pass", 60)
    assert result.exit_code == 127 and not result.timed_out
    assert "can be started: [Errno 8] /root/program: Exec format error]" in result.note


@pytest.mark.parametrize(("real", "opens", "breaks"), _OPENS)
def test_a_failure_of_the_machine_is_raised(
    sandbox: BaseSandbox,
    real: bytes,
    opens: Callable[[BaseSandbox], Session],
    breaks: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sandbox.write("/root/program", _WRAPPER % real, 0o755)
    session = opens(sandbox)

    def spawn(*_: object, **__: object) -> BaseProcess:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(sandbox, "spawn", spawn)
    with pytest.raises(OSError, match="Too many open files"):
        session.run(breaks, 60)


@pytest.mark.parametrize("kind", [BashSession, FreshShellSession])
@pytest.mark.parametrize("open_files", [64, 100])
def test_a_shell_starts_with_a_low_limit_of_open_files(
    kind: type[BashSession | FreshShellSession], open_files: int
) -> None:
    with open_test_sandbox(limits=Limits(open_files=open_files)) as sandbox:
        session = kind(sandbox)
        assert session.run("x=1; ulimit -n", 60).output == f"{open_files}\n"
        words = " ".join(f"<(echo {number})" for number in range(12))
        assert session.run(f"cat {words} | wc -l", 60).output == "12\n"
        assert session.run("trap : DEBUG; echo $x", 60).output == "1\n"


def test_the_error_about_a_shell_that_ends_at_once_says_so(sandbox: BaseSandbox) -> None:
    sandbox.write("/root/program", b"#!/bin/sh\nexit 3\n", 0o755)
    with pytest.raises(SandboxError, match="the shell has ended"):
        BashSession(sandbox, shell="/root/program")
