"""Tries one hostile case on one back end, and says what does not hold."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from hostile.cases import LONG, Case, Probe
from hostile.planted import Planted, Space, members, space_of
from intercode.core.errors import SandboxLostError
from intercode.core.types import ExecResult
from intercode.sandbox import Limits, SandboxSpec, images, open_sandbox
from intercode.sandbox.contract import Sandbox
from intercode.sessions.bash.persistent import BashSession
from support import back_end

_SHORT = Limits(disk=128 << 20, inodes=20_000)  # what is to be used up is used up sooner
_LIMITS = Limits() if LONG else _SHORT


def _opens(kind: str) -> Callable[[], Sandbox]:
    return lambda: open_sandbox(SandboxSpec(images.resolve("host"), limits=_LIMITS), kind)


BACK_ENDS: dict[str, Callable[[], Sandbox]] = {name: _opens(name) for name in back_end.NAMES}
"""Each opens a box with a bash and a Python. A new back end is one more name."""

_MARGIN = 1.0  # seconds that an action may take beyond its limit
_GONE = 2.0  # seconds for the last process of a closed box to be gone
_RESTARTED = "[the shell ended;"
_FULL = ("that its files may take up]", f"over the limit of {_LIMITS.inodes} files]")
_TRIES = 3  # of a case in which nothing but the time did not hold
T = TypeVar("T")


class LateError(AssertionError):
    """Something took longer than it may."""


def try_case(case: Case, back_end: str, planted: Planted) -> None:
    """Raise AssertionError that says what does not hold. What was late is tried again: what really
    takes too long does so every time, and a machine that stood still does not."""
    for left in reversed(range(_TRIES)):
        try:
            Trial(case, back_end, planted).run()
            break
        except LateError:
            if not left:
                raise


class Trial:
    """One case in a box of its own."""

    def __init__(self, case: Case, back_end: str, planted: Planted) -> None:
        self.case, self.planted = case, planted
        self.open_box = BACK_ENDS[back_end]
        self.slower = planted.pulse.slower()
        self.printed = ""
        self.lost = False

    def run(self) -> None:
        """Raise AssertionError that says what does not hold."""
        box = self.open_box()
        space = space_of(box.run(["readlink", "/proc/self/ns/pid"], timeout=20).output.strip())
        try:
            session = BashSession(box)
            try:
                self.act(session)
            except SandboxLostError as e:
                assert self.case.after == "wrecked", f"the box was lost: {e}"
                self.lost = True
            for probe in self.case.probes:
                self.probe(box, probe)
        except Exception:
            if self.case.fault:
                self.planted.spared.add(space)
            raise
        finally:
            self.timed(box.close, 0.0, "closing the box")
        self.nothing_left(space)
        assert self.planted.secret not in self.printed, "a planted secret was read"
        assert self.planted.mark not in self.printed, "the other box was read"
        self.planted.unharmed()
        self.next_box()

    def timed(self, work: Callable[[], T], limit: float, what: str, computes: bool = False) -> T:
        """What ``work`` gives, which must end within ``limit`` seconds and the margin; later by no
        more than what the machine was late meanwhile (see ``Pulse``), or, where it is the owner who
        ``computes``, than what it shared the processors."""
        start = time.monotonic()
        try:
            return work()
        finally:
            took, most = time.monotonic() - start, limit + _MARGIN
            late = self.planted.pulse.late(start)
            if computes:
                late += limit * (self.planted.pulse.crowded(start) - 1)
            if took > most + late:
                raise LateError(f"{what} took {took:.2f} s: over {most:.2f} + {late:.2f} s")

    def act(self, session: BashSession) -> None:
        """The actions, and what must hold when they are over."""
        case, limit = self.case, self.case.limit * self.slower
        result: ExecResult | None = None
        for action in case.actions:
            code = self.planted.fill(action)
            result = self.timed(
                lambda code=code: session.run(code, limit),  # type: ignore[misc]
                limit, f"{action[:60]!r}",
            )  # fmt: skip
            self.printed += result.observation
            assert result.timed_out == (result.exit_code is None) or not result.timed_out, result
        assert result is not None
        if case.late is not None:  # what fills the disk may have been ended for that before
            stopped = result.timed_out or (case.late and any(f in result.note for f in _FULL))
            assert stopped == case.late, f"timed_out is {result.timed_out}: {result}"
        for text in case.shows:
            assert self.planted.fill(text) in self.printed, f"{text!r} not in {self.printed!r}"
        for text in case.hides:
            assert self.planted.fill(text) not in self.printed, f"{text!r} in {self.printed!r}"
        self.usable(session)

    def usable(self, session: BashSession) -> None:
        """The session goes on; or, where it was wrecked, it says so in time."""

        def say() -> ExecResult:
            limit = 2.0 * self.planted.pulse.slower()  # bombs in the background may still go off
            return self.timed(lambda: session.run("builtin echo on", limit), limit, "`echo on`")

        result = say()
        if self.case.after == "reset":
            self.timed(lambda: session.run("exit", 2.0), 2.0, "`exit`")
            result = say()
        if _RESTARTED in result.note:  # what an earlier action has done cost this one
            result = say()
        if self.case.after != "wrecked":
            if result.timed_out or _RESTARTED in result.note:  # given up, as it did not answer
                raise LateError(f"not usable in time: {result}")
            assert "on\n" in result.output and result.exit_code == 0, f"not usable: {result}"

    def probe(self, box: Sandbox, probe: Probe) -> None:
        """Do one thing to the box's files from outside."""
        what, path = probe[0], self.planted.fill(probe[1])
        works: dict[str, Callable[[], object]] = {
            "read": lambda: box.read_file(path, 8 << 20),
            "refused": lambda: box.read_file(path, 8 << 20),
            "write": lambda: box.write_file(path, b"written"),
            "denied": lambda: box.write_file(path, b"written"),
            "changes": box.changes,
            "clone": lambda: _use(box.clone()),
        }
        limit = (10.0 if LONG else 4.0) if what in ("changes", "clone") else 1.0
        label = f"{what} {path[:60]!r}"
        try:
            got = self.timed(works[what], limit, label, computes=True)
        except OSError as e:
            assert what not in ("changes", "clone"), f"{label} failed: {e}"
            return
        assert what not in ("refused", "denied"), f"{label} was let through: {str(got)[:80]}"
        if isinstance(got, bytes):
            self.printed += got.decode(errors="replace")

    def nothing_left(self, space: Space) -> None:
        """No process of the box's process namespace runs any more. PID 1 stays until the machine's
        own PID 1 has collected the others: that is looked at when all cases are over."""
        self.planted.spaces.add(space)
        start = time.monotonic()
        while left := [entry for number, entry in members(space) if number != 1]:
            late = time.monotonic() - start - self.planted.pulse.late(start)
            assert late < _GONE, f"processes of a closed box live on: {left}"
            time.sleep(0.02)

    def next_box(self) -> None:
        """A new box works."""
        if self.case.after == "wrecked" or self.lost:
            with self.open_box() as new:
                done = new.run(["echo", "on"], timeout=20)
                assert done.output == "on\n", f"a new box does not work: {done}"


def _use(clone: Sandbox) -> None:
    with clone:
        done = clone.run(["/bin/echo", "on"], timeout=20)
        assert done.output == "on\n", f"a clone does not work: {done}"
