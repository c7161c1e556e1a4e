"""Runs a task's hidden tests on what an agent has written.

In a fresh box: the agent's code is run again there, then the tests in a fork of that interpreter.
Calls and their plain results cross, and nothing else; see python_judging.py for the verdict.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from typing import Any

from intercode.core.errors import GoldError, SandboxError
from intercode.core.types import Task, TestRun
from intercode.environments.base.output_comparison import (
    numbered_arguments,
    same_output,
    same_value,
)
from intercode.environments.base.workspaces import Place
from intercode.environments.python.assertions import Plan, plan
from intercode.sandbox.output import Collector, decode, drain
from intercode.sessions.python.interpreter import Interpreter, InterpreterEndedError, RefusedError
from intercode.sessions.python.session import PythonSession
from intercode.sessions.python.state import Action
from intercode.sessions.python.values import Raised, read, read_all

_NOTHING = "nothing was defined"
_LATE, _ENDED = "over the time limit of {:g} s", "the interpreter ended"
_UNREADABLE = "what it returned cannot be compared: {}"
_FORK_SECONDS = 30.0
_planned = lru_cache(4096)(plan)
Check = Callable[[Interpreter, Collector, float], str]
"""Has an interpreter do what a test wants, for so many seconds: empty where it passed, or what was
wrong with it. Raises ``_Late``, InterpreterEndedError."""


class _LateError(Exception):
    pass


class Grader:
    """Grades what was written for one task. ``open_place`` opens a fresh box with its session;
    ``seconds`` are for each test, ``patience`` for each action that is run again."""

    def __init__(
        self, task: Task, open_place: Callable[[], Place], seconds: float, patience: float
    ) -> None:
        self.task, self._open_place = task, open_place
        self.seconds, self.patience = seconds, patience
        self.tests: Sequence[Any] = task.data.get("tests", ())
        if not self.tests:
            raise GoldError(f"{task.id} has no tests: nothing to grade with")
        self.plans = [self._plan(test) for test in self.tests]

    def _plan(self, test: Any) -> Plan | None:
        if isinstance(test, str):
            return _planned(test, str(self.task.data.get("entry", "")))
        if isinstance(test, Mapping) and {"input", "output"} <= test.keys():
            return None
        raise GoldError(f"{self.task.id}: a test is a text or has an input and an output: {test!r}")

    def grade(self, actions: Sequence[Action], answer: str | None) -> tuple[TestRun, ...]:
        """How each test goes. ``answer`` names the function, if not that which the tests call."""
        if not any(not a.lost for a in actions):
            return tuple(TestRun(_text(test), False, error=_NOTHING) for test in self.tests)
        place = self._open_place()
        try:
            session = place.session
            assert isinstance(session, PythonSession)
            clean = self._clean(session)
            checks = self._checks(session, actions, answer, clean)
            texts = [_text(test) for test in self.tests]
            with closing(_Runner(session, place, self.seconds)) as runner:
                return tuple(runner.run(t, c) for t, c in zip(texts, checks, strict=True))
        except (InterpreterEndedError, SandboxError) as e:
            why = str(e) or _ENDED
            return tuple(TestRun(_text(test), False, error=why) for test in self.tests)
        finally:
            place.close()

    # --------------------------------------------------------------- preparing
    def _clean(self, session: PythonSession) -> list[list[Any]]:
        """What the parts of the tests come to that no agent's code may touch: before there is any
        in the box, and in a fork that has ended by then."""
        if not any(p and p.clean for p in self.plans):
            return [[] for _ in self.plans]
        fork = session.interpreter().fork("any", _FORK_SECONDS)
        try:
            fork.learn("values")
            setup = str(self.task.data.get("setup") or "")
            return [self._evaluated(fork, setup, p.clean if p else ()) for p in self.plans]
        finally:
            fork.kill()
            fork.close()

    def _evaluated(self, fork: Interpreter, setup: str, wanted: tuple[str, ...]) -> list[Any]:
        if not wanted:
            return []
        text = fork.ask("clean", setup, wanted, timeout=self.seconds)
        values = read_all(text or "[]", len(wanted))
        for expression, value in zip(wanted, values, strict=True):
            if isinstance(value, Raised):
                raise GoldError(f"{self.task.id}: {expression!r} of a test raises {value}")
        return values

    def _checks(
        self,
        session: PythonSession,
        actions: Sequence[Action],
        answer: str | None,
        clean: list[list[Any]],
    ) -> list[Check]:
        """Have the agent's code run again, and say what each test is."""
        data, entry = self.task.data, str(self.task.data.get("entry") or "")
        if data.get("mode") == "stdin":
            program = next(a.code for a in reversed(actions) if not a.lost)
            code = f"{data.get('prelude', '')}\n{program}"
            return [_Program(code, test) for test in self.tests]
        for code in (str(data.get("prelude") or ""), *(a.again() for a in actions)):
            if code:
                session.run(code, self.patience)
        base = session.interpreter()
        base.learn("values")
        if answer and entry and answer != entry:
            base.ask("alias", entry, answer, timeout=_FORK_SECONDS)
        if setup := str(data.get("setup") or ""):
            session.run(setup, self.patience)
        pairs = zip(self.plans, clean, self.tests, strict=True)
        return [_Assertion(p, c) if p else _Call(entry, test) for p, c, test in pairs]


class _Runner:
    """Runs tests one by one in a fork of an interpreter that has run the agent's code: another fork
    after one that did not come back in time, or ended."""

    def __init__(self, session: PythonSession, place: Place, seconds: float) -> None:
        self._session, self._box, self._seconds = session, place.box, seconds
        self._fork: Interpreter | None = None

    def run(self, text: str, check: Check) -> TestRun:
        """One test. What its fork has left running is ended where the fork is."""
        printed = Collector(self._box.spec.limits.output)
        error, broken = _ENDED, True
        try:
            if self._fork is None:
                self._mark = self._box.mark()
                self._fork = self._session.interpreter().fork("test", _FORK_SECONDS)
                self._fork.learn("values")
            error, broken = check(self._fork, printed, self._seconds), False
        except _LateError:
            error = _LATE.format(self._seconds)
        except (InterpreterEndedError, RefusedError) as e:
            error = str(e) or _ENDED
        if broken and self._fork is not None:
            self._box.kill_since(self._mark, keep=self._session.own)
            drain(self._fork.output, printed)
        if broken or isinstance(check, _Program):
            self.close()
        return TestRun(text, not error, decode(printed.bytes()), error)

    def close(self) -> None:
        """Give up the fork."""
        fork, self._fork = self._fork, None
        if fork is not None:
            fork.close()


def _text(test: Any) -> str:
    return test if isinstance(test, str) else repr(test)


def _asked(answer: str | None) -> str:
    if answer is None:
        raise _LateError
    return answer


class _Assertion:
    """An assert statement."""

    def __init__(self, test: Plan, clean: list[Any]) -> None:
        self._plan, self._clean = test, clean

    def __call__(self, fork: Interpreter, printed: Collector, seconds: float) -> str:
        asked = self._plan.asked
        text = _asked(fork.ask("values", asked, into=printed, timeout=seconds))
        try:
            values = read_all(text, len(asked))
            for value in values:
                if isinstance(value, Raised):
                    return str(value)
            return "" if self._plan.holds(values, self._clean) else "AssertionError"
        except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as e:
            return _UNREADABLE.format(e)


class _Call:
    """A call with the value that it should return, compared as APPS does."""

    def __init__(self, entry: str, test: Mapping[str, Any]) -> None:
        self._entry, self._test = entry, test

    def __call__(self, fork: Interpreter, printed: Collector, seconds: float) -> str:
        arguments = numbered_arguments(list(self._test["input"]))
        text = fork.ask("call", self._entry, arguments, into=printed, timeout=seconds)
        try:
            value = read(_asked(text))
            if isinstance(value, Raised):
                return str(value)
            return "" if same_value(value, self._test["output"]) else "AssertionError"
        except (TypeError, ValueError, RecursionError) as e:
            return _UNREADABLE.format(e)


class _Program:
    """A program with what it reads and should print, compared as APPS does."""

    def __init__(self, code: str, test: Mapping[str, Any]) -> None:
        self._code, self._test = code, test

    def __call__(self, fork: Interpreter, printed: Collector, seconds: float) -> str:
        until = time.monotonic() + seconds
        fork.feed(self._code, str(self._test["input"]), printed, seconds)
        drain(fork.output, printed)
        if time.monotonic() > until:
            raise _LateError
        said = decode(printed.bytes())
        return "" if same_output(said, str(self._test["output"])) else "AssertionError"
