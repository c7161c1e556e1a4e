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
from intercode.core.types import Task, TestResult
from intercode.environments.base.output_comparison import (
    same_output,
    same_value,
    with_integer_keys,
)
from intercode.environments.base.workspaces import Workspace
from intercode.environments.python.assertions import SplitAssertion, split_assertion
from intercode.sandbox.output import Collector, decode, drain
from intercode.sessions.python.interpreter import Interpreter, InterpreterEndedError, RefusedError
from intercode.sessions.python.session import Action, PythonSession
from intercode.sessions.python.values import ExceptionInfo, decode_value, decode_values

_NO_CODE = "nothing was defined"
_TIME_LIMIT, _INTERPRETER_ENDED = "over the time limit of {:g} s", "the interpreter ended"
_NOT_COMPARABLE = "what it returned cannot be compared: {}"
_FORK_SECONDS = 30.0
_split_assertion = lru_cache(4096)(split_assertion)
TestCheck = Callable[[Interpreter, Collector, float], str]
"""Has an interpreter do what a test wants, for so many seconds: empty where it passed, or what was
wrong with it. Raises ``_Late``, InterpreterEndedError."""


class _TimeLimitError(Exception):
    pass


class Grader:
    """Grades what was written for one task. ``open_place`` opens a fresh box with its session;
    ``seconds`` are for each test, ``patience`` for each action that is run again."""

    def __init__(
        self,
        task: Task,
        open_place: Callable[[], Workspace],
        test_timeout: float,
        rerun_timeout: float,
    ) -> None:
        self.task, self._open_place = task, open_place
        self.test_timeout, self.rerun_timeout = test_timeout, rerun_timeout
        self.tests: Sequence[Any] = task.data.get("tests", ())
        if not self.tests:
            raise GoldError(f"{task.id} has no tests: nothing to grade with")
        self.assertions = [self._split_test(test) for test in self.tests]

    def _split_test(self, test: Any) -> SplitAssertion | None:
        if isinstance(test, str):
            return _split_assertion(test, str(self.task.data.get("entry", "")))
        if isinstance(test, Mapping) and {"input", "output"} <= test.keys():
            return None
        raise GoldError(f"{self.task.id}: a test is a text or has an input and an output: {test!r}")

    def grade(self, actions: Sequence[Action], answer: str | None) -> tuple[TestResult, ...]:
        """How each test goes. ``answer`` names the function, if not that which the tests call."""
        if not any(not a.lost for a in actions):
            return tuple(TestResult(_test_text(test), False, error=_NO_CODE) for test in self.tests)
        place = self._open_place()
        try:
            session = place.session
            assert isinstance(session, PythonSession)
            clean = self._evaluate_clean(session)
            checks = self._prepare_checks(session, actions, answer, clean)
            texts = [_test_text(test) for test in self.tests]
            with closing(_TestRunner(session, place, self.test_timeout)) as runner:
                return tuple(runner.run(t, c) for t, c in zip(texts, checks, strict=True))
        except (InterpreterEndedError, SandboxError) as e:
            why = str(e) or _INTERPRETER_ENDED
            return tuple(TestResult(_test_text(test), False, error=why) for test in self.tests)
        finally:
            place.close()

    # --------------------------------------------------------------- preparing
    def _evaluate_clean(self, session: PythonSession) -> list[list[Any]]:
        """What the parts of the tests come to that no agent's code may touch: before there is any
        in the box, and in a fork that has ended by then."""
        if not any(p and p.clean_expressions for p in self.assertions):
            return [[] for _ in self.assertions]
        fork = session.interpreter().fork("any", _FORK_SECONDS)
        try:
            fork.load_module("values")
            setup = str(self.task.data.get("setup") or "")
            return [
                self._evaluate(fork, setup, p.clean_expressions if p else ())
                for p in self.assertions
            ]
        finally:
            fork.kill()
            fork.close()

    def _evaluate(self, fork: Interpreter, setup: str, wanted: tuple[str, ...]) -> list[Any]:
        if not wanted:
            return []
        text = fork.request("clean", setup, wanted, timeout=self.test_timeout)
        values = decode_values(text or "[]", len(wanted))
        for expression, value in zip(wanted, values, strict=True):
            if isinstance(value, ExceptionInfo):
                raise GoldError(f"{self.task.id}: {expression!r} of a test raises {value}")
        return values

    def _prepare_checks(
        self,
        session: PythonSession,
        actions: Sequence[Action],
        answer: str | None,
        clean: list[list[Any]],
    ) -> list[TestCheck]:
        """Have the agent's code run again, and say what each test is."""
        data, entry = self.task.data, str(self.task.data.get("entry") or "")
        if data.get("mode") == "stdin":
            program = next(a.code for a in reversed(actions) if not a.lost)
            code = f"{data.get('prelude', '')}\n{program}"
            return [_ProgramCheck(code, test) for test in self.tests]
        for code in (str(data.get("prelude") or ""), *(a.replay_code() for a in actions)):
            if code:
                session.run(code, self.rerun_timeout)
        base = session.interpreter()
        base.load_module("values")
        if answer and entry and answer != entry:
            base.request("alias", entry, answer, timeout=_FORK_SECONDS)
        if setup := str(data.get("setup") or ""):
            session.run(setup, self.rerun_timeout)
        pairs = zip(self.assertions, clean, self.tests, strict=True)
        return [_AssertionCheck(p, c) if p else _CallCheck(entry, test) for p, c, test in pairs]


class _TestRunner:
    """Runs tests one by one in a fork of an interpreter that has run the agent's code: another fork
    after one that did not come back in time, or ended."""

    def __init__(self, session: PythonSession, place: Workspace, seconds: float) -> None:
        self._session, self._box, self._seconds = session, place.sandbox, seconds
        self._fork: Interpreter | None = None

    def run(self, text: str, check: TestCheck) -> TestResult:
        """One test. What its fork has left running is ended where the fork is."""
        printed = Collector(self._box.spec.limits.output)
        error, broken = _INTERPRETER_ENDED, True
        try:
            if self._fork is None:
                self._mark = self._box.mark()
                self._fork = self._session.interpreter().fork("test", _FORK_SECONDS)
                self._fork.load_module("values")
            error, broken = check(self._fork, printed, self._seconds), False
        except _TimeLimitError:
            error = _TIME_LIMIT.format(self._seconds)
        except (InterpreterEndedError, RefusedError) as e:
            error = str(e) or _INTERPRETER_ENDED
        if broken and self._fork is not None:
            self._box.kill_since(self._mark, keep=self._session.own_pids)
            drain(self._fork.output, printed)
        if broken or isinstance(check, _ProgramCheck):
            self.close()
        return TestResult(text, not error, decode(printed.bytes()), error)

    def close(self) -> None:
        """Give up the fork."""
        fork, self._fork = self._fork, None
        if fork is not None:
            fork.close()


def _test_text(test: Any) -> str:
    return test if isinstance(test, str) else repr(test)


def _require_answer(answer: str | None) -> str:
    if answer is None:
        raise _TimeLimitError
    return answer


class _AssertionCheck:
    """An assert statement."""

    def __init__(self, test: SplitAssertion, clean: list[Any]) -> None:
        self._plan, self._clean = test, clean

    def __call__(self, fork: Interpreter, printed: Collector, seconds: float) -> str:
        asked = self._plan.agent_expressions
        text = _require_answer(fork.request("values", asked, into=printed, timeout=seconds))
        try:
            values = decode_values(text, len(asked))
            for value in values:
                if isinstance(value, ExceptionInfo):
                    return str(value)
            return "" if self._plan.holds(values, self._clean) else "AssertionError"
        except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as e:
            return _NOT_COMPARABLE.format(e)


class _CallCheck:
    """A call with the value that it should return, compared as APPS does."""

    def __init__(self, entry: str, test: Mapping[str, Any]) -> None:
        self._entry, self._test = entry, test

    def __call__(self, fork: Interpreter, printed: Collector, seconds: float) -> str:
        arguments = with_integer_keys(list(self._test["input"]))
        text = fork.request("call", self._entry, arguments, into=printed, timeout=seconds)
        try:
            value = decode_value(_require_answer(text))
            if isinstance(value, ExceptionInfo):
                return str(value)
            return "" if same_value(value, self._test["output"]) else "AssertionError"
        except (TypeError, ValueError, RecursionError) as e:
            return _NOT_COMPARABLE.format(e)


class _ProgramCheck:
    """A program with what it reads and should print, compared as APPS does."""

    def __init__(self, code: str, test: Mapping[str, Any]) -> None:
        self._code, self._test = code, test

    def __call__(self, fork: Interpreter, printed: Collector, seconds: float) -> str:
        until = time.monotonic() + seconds
        fork.run_program(self._code, str(self._test["input"]), printed, seconds)
        drain(fork.output, printed)
        if time.monotonic() > until:
            raise _TimeLimitError
        said = decode(printed.bytes())
        return "" if same_output(said, str(self._test["output"])) else "AssertionError"
