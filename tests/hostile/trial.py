"""Runs one hostile case on one back end, and reports failed expectations."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from hostile.cases import LONG, Case, Probe
from hostile.planted import Planted, Space, members, space_of
from intercode.core.errors import SandboxLostError
from intercode.core.types import ExecResult
from intercode.sessions.bash.persistent import BashSession
from intercode.sessions.paths import to_programs
from intercode_sandbox import Limits, SandboxSpec, images, open_sandbox
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.supervisor.supervised_sandbox import SupervisedSandbox
from support import backend
from support.sandboxes import eventually

_SHORT = Limits(disk=128 << 20, inodes=20_000)  # small limits are reached sooner
_LIMITS = Limits() if LONG else _SHORT


def _opens(kind: str) -> Callable[[], BaseSandbox]:
    return lambda: open_sandbox(SandboxSpec(images.resolve("host"), limits=_LIMITS), kind)


TIERS = ("namespace/1", "namespace/2", "docker", "podman", "landlock")
"""What the table of the suite has a row for."""
BACKENDS: dict[str, Callable[[], BaseSandbox]] = {
    name: _opens(name) for name in (*backend.NAMES, *TIERS)
}
"""Each opens a sandbox with a bash and a Python. A new back end adds one name."""

_PATIENCE = 120
"""Seconds after which what has its own limit, of at most half of this, has held up its owner."""
_ENOUGH = 60.0  # seconds for what has to end by itself
_RESTARTED = "[the shell ended;"
_FULL = ("for all files]", f"over the limit of {_LIMITS.inodes} files]")
T = TypeVar("T")


def ended(work: Callable[[], T], what: str) -> T:
    """Return the result of ``work``, which must end by its own limit."""

    def give_up(*_: object) -> None:
        raise AssertionError(f"{what} held up its owner")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(_PATIENCE)
    try:
        return work()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def try_case(case: Case, backend: str, planted: Planted) -> None:
    """Raise AssertionError with the failed expectation."""
    Trial(case, backend, planted).run()


class Trial:
    """One case in its own sandbox."""

    def __init__(self, case: Case, backend: str, planted: Planted) -> None:
        self.case, self.planted = case, planted
        self.open_new = BACKENDS[backend]
        self.printed = ""
        self.lost = False

    def run(self) -> None:
        """Raise AssertionError with the failed expectation."""
        sandbox = self.open_new()
        assert isinstance(sandbox, SupervisedSandbox)
        self.temporary = to_programs(sandbox, "/tmp")
        space = space_of(sandbox)
        session = BashSession(sandbox)
        try:
            try:
                self.act(session)
            except SandboxLostError as e:
                assert self.case.after == "wrecked", f"the sandbox was lost: {e}"
                self.lost = True
            for probe in self.case.probes:
                self.probe(sandbox, probe)
        except Exception:
            if self.case.fault:
                self.planted.excluded.add(space)
            raise
        finally:
            ended(sandbox.close, "closing the sandbox")  # while the shell runs
            session.close()
        self.nothing_left(space)
        assert self.planted.secret not in self.printed, "a planted secret was read"
        assert self.planted.mark not in self.printed, "the other sandbox was read"
        self.planted.unharmed()
        self.check_new_sandbox()

    def act(self, session: BashSession) -> None:
        """Run the actions, and check what must hold afterwards."""
        case = self.case
        limit = _ENOUGH if case.late is False else case.limit
        result: ExecResult | None = None
        for action in case.actions:
            code = self.fill(action)
            result = ended(partial(session.run, code, limit), f"{action[:60]!r}")
            self.printed += result.observation
            assert result.timed_out == (result.exit_code is None) or not result.timed_out, result
        assert result is not None
        if case.late is not None:  # a process that fills the disk may have been killed before
            stopped = result.timed_out or (case.late and any(f in result.note for f in _FULL))
            assert stopped == case.late, f"timed_out is {result.timed_out}: {result}"
        for text in case.shows:
            assert self.fill(text) in self.printed, f"{text!r} not in {self.printed!r}"
        for text in case.hides:
            assert self.fill(text) not in self.printed, f"{text!r} in {self.printed!r}"
        self.usable(session)

    def fill(self, text: str) -> str:
        """Return what an action or its output holds in place of ``text`` on this back end."""
        return self.planted.fill(text.replace("/tmp", self.temporary))

    def usable(self, session: BashSession) -> None:
        """Check that the session continues, or that it reports in time that it was broken."""

        # background processes may still act; a shell that was destroyed may never answer
        limit = 2.0 if self.case.after == "wrecked" else _ENOUGH

        def say() -> ExecResult:
            return ended(lambda: session.run("\\builtin echo on", limit), "`echo on`")

        result = say()
        if self.case.after == "reset":
            ended(lambda: session.run("exit", 2.0), "`exit`")
            result = say()
        if _RESTARTED in result.note:  # an earlier action has already ended this shell
            result = say()
        if self.case.after != "wrecked":
            kept = not result.timed_out and _RESTARTED not in result.note
            assert kept, f"the shell did not answer in time: {result}"
            assert "on\n" in result.output and result.exit_code == 0, f"not usable: {result}"

    def probe(self, sandbox: BaseSandbox, probe: Probe) -> None:
        """Do one operation on the sandbox's files from outside."""
        what, path = probe[0], self.planted.fill(probe[1])
        works: dict[str, Callable[[], object]] = {
            "read": lambda: sandbox.read(path, 8 << 20),
            "refused": lambda: sandbox.read(path, 8 << 20),
            "write": lambda: sandbox.write(path, b"written"),
            "denied": lambda: sandbox.write(path, b"written"),
            "changes": sandbox.changes,
            "clone": lambda: _use(sandbox.fork()),
        }
        label = f"{what} {path[:60]!r}"
        try:
            got = ended(works[what], label)
        except OSError as e:
            assert what not in ("changes", "clone"), f"{label} failed: {e}"
            return
        assert what not in ("refused", "denied"), f"{label} was let through: {str(got)[:80]}"
        if isinstance(got, bytes):
            self.printed += got.decode(errors="replace")

    def nothing_left(self, space: Space) -> None:
        """Check that no process of the sandbox's process namespace runs. PID 1 remains until the
        machine's PID 1 has collected the others, which is checked after all cases."""
        self.planted.spaces.add(space)
        eventually(
            lambda: not [entry for number, entry in members(space) if number != 1],
            "the processes of a closed sandbox have ended",
        )

    def check_new_sandbox(self) -> None:
        """Check that a new sandbox works."""
        if self.case.after == "wrecked" or self.lost:
            with self.open_new() as new:
                done = new.run(["echo", "on"], timeout=_ENOUGH)
                assert done.output == "on\n", f"a new sandbox does not work: {done}"


def _use(clone: BaseSandbox) -> None:
    with clone:
        done = clone.run(["/bin/echo", "on"], timeout=_ENOUGH)
        assert done.output == "on\n", f"a clone does not work: {done}"
