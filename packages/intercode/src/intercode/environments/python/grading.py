"""Runs a task's hidden tests on the agent's code.

The code runs again in a fresh sandbox, without the files that ``absent_in_tests`` names.
The tests run in a fork of that interpreter. Only calls and their plain results cross between the
two sides. assertions.py decides the verdict.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from typing import Any

from intercode.core.errors import GoldError, SandboxError
from intercode.core.python_syntax import parse_python
from intercode.core.types import TestResult
from intercode.datasets.payloads import PythonPayload
from intercode.environments.base.episode_context import EpisodeContext
from intercode.environments.base.workspaces import SandboxWorkspace
from intercode.environments.python.assertions import SplitAssertion, split_assertion
from intercode.environments.python.output_comparison import (
    same_output,
    same_value,
    with_integer_keys,
)
from intercode.sessions.python.interpreter import (
    Interpreter,
    InterpreterEndedError,
    InterpreterRefusedError,
)
from intercode.sessions.python.session import Action, PythonSession
from intercode.sessions.python.values import ExceptionInfo, decode_value, decode_values
from intercode_sandbox.long_output import Collector
from intercode_sandbox.streams import decode, drain

_NO_CODE = "nothing was defined"
_TIME_LIMIT, _INTERPRETER_ENDED = "over the time limit of {:g} s", "the interpreter ended"
_NOT_COMPARABLE = "what it returned cannot be compared: {}"
_TOO_MUCH_OUTPUT = "it printed more than {} bytes, twice what was expected and a margin"
_OUTPUT_MARGIN = 1 << 20
"""Bytes that a program may print beyond twice the expected output."""
_FORK_SECONDS = 30.0
_split_assertion = lru_cache(4096)(split_assertion)
TestCheck = Callable[[Interpreter, Collector, float], str]
"""Runs one test in an interpreter within a number of seconds. Returns an empty text if the test
passed, else what is wrong. Raises ``_TimeLimitError``, InterpreterEndedError."""


class _TimeLimitError(Exception):
    pass


class Grader:
    """Grades the code of an episode.

    ``test_timeout`` is in seconds for each test, ``rerun_timeout`` for each action that is run
    again.
    """

    def __init__(self, episode: EpisodeContext, test_timeout: float, rerun_timeout: float) -> None:
        self.task = task = episode.task
        self._open_workspace = episode.open_test_workspace
        self.test_timeout, self.rerun_timeout = test_timeout, rerun_timeout
        self.payload = PythonPayload.of(task)
        self.tests = self.payload.tests
        if not self.tests:
            raise GoldError(f"{task.id} has no tests: nothing to grade with")
        entry = self.payload.entry
        self.assertions = [
            _split_assertion(test, entry) if isinstance(test, str) else None for test in self.tests
        ]

    def grade(self, actions: Sequence[Action], answer: str | None) -> tuple[TestResult, ...]:
        """Return the result of each test. ``answer`` names the function, if it is not the one
        that the tests call."""
        if not self._ran_code(actions):
            return tuple(TestResult(_test_text(test), False, error=_NO_CODE) for test in self.tests)
        workspace = self._open_workspace()
        try:
            session = workspace.session
            assert isinstance(session, PythonSession)
            clean = self._evaluate_clean(session)
            checks = self._prepare_checks(session, actions, answer, clean)
            texts = [_test_text(test) for test in self.tests]
            with closing(_TestRunner(session, workspace, self.test_timeout)) as runner:
                return tuple(runner.run(t, c) for t, c in zip(texts, checks, strict=True))
        except (InterpreterEndedError, InterpreterRefusedError, SandboxError) as e:
            why = str(e) or _INTERPRETER_ENDED
            return tuple(TestResult(_test_text(test), False, error=why) for test in self.tests)
        finally:
            workspace.close()

    def _ran_code(self, actions: Sequence[Action]) -> bool:
        """Return whether there is code to run the tests on."""
        if self.payload.mode == "stdin":
            return any(map(_is_program, actions))
        return not all(a.lost for a in actions)

    # --------------------------------------------------------------- preparing
    def _evaluate_clean(self, session: PythonSession) -> list[list[Any]]:
        """Evaluate the parts of the tests that the agent's code must not influence. They run in a
        fork that ends before the agent's code enters the sandbox."""
        if not any(p and p.clean_expressions for p in self.assertions):
            return [[] for _ in self.assertions]
        fork = session.interpreter().fork("any", _FORK_SECONDS)
        try:
            fork.load_module("values")
            return [
                self._evaluate(fork, self.payload.setup, p.clean_expressions if p else ())
                for p in self.assertions
            ]
        finally:
            fork.kill()
            fork.close()

    def _evaluate(self, fork: Interpreter, setup: str, expressions: tuple[str, ...]) -> list[Any]:
        if not expressions:
            return []
        text = fork.request("clean", setup, expressions, timeout=self.test_timeout)
        values = decode_values(text or "[]", len(expressions))
        for expression, value in zip(expressions, values, strict=True):
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
        """Run the agent's code again and return a check for each test."""
        payload, entry = self.payload, self.payload.entry
        if payload.mode == "stdin":
            program = next(a.code for a in reversed(actions) if _is_program(a))
            code = f"{payload.prelude}\n{program}"
            return [_ProgramCheck(code, test) for test in self.tests]
        for code in (payload.prelude, *(a.replay_code() for a in actions)):
            if code:
                code = _continuing_after_errors(code) if payload.absent_in_tests else code
                session.run(code, self.rerun_timeout)
        base = session.interpreter()
        base.load_module("values")
        if answer and entry and answer != entry:
            base.request("alias", entry, answer, timeout=_FORK_SECONDS)
        if payload.setup:
            session.run(payload.setup, self.rerun_timeout)
        pairs = zip(self.assertions, clean, self.tests, strict=True)
        return [_AssertionCheck(p, c) if p else _CallCheck(entry, test) for p, c, test in pairs]


def _is_program(action: Action) -> bool:
    """Return whether an action ran to its end, by itself or by ending the interpreter."""
    return not action.lost or action.status is not None


def _continuing_after_errors(code: str) -> str:
    """Return code in which a top-level statement that raises does not keep the next from running.

    So the import of a module that is absent in the tests takes no definition of its action with it.
    """
    handler = ast.ExceptHandler(ast.Name("Exception", ast.Load()), None, [ast.Pass()])
    try:
        module = parse_python(code)
        module.body = [
            node
            if isinstance(node, ast.ImportFrom) and node.module == "__future__"
            else ast.Try([node], [handler], [], [])
            for node in module.body
        ]
        return ast.unparse(module)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code


class _TestRunner:
    """Runs tests one by one in a fork of an interpreter that has run the agent's code.

    A fork that did not answer in time, or ended, is replaced by another one.
    """

    def __init__(self, session: PythonSession, workspace: SandboxWorkspace, timeout: float) -> None:
        self._session, self._sandbox, self._seconds = session, workspace.sandbox, timeout
        self._fork: Interpreter | None = None

    def run(self, text: str, check: TestCheck) -> TestResult:
        """Run one test. Processes that it leaves behind are ended together with the fork."""
        printed = Collector(self._sandbox.spec.limits.output)
        error, broken = _INTERPRETER_ENDED, True
        try:
            if self._fork is None:
                self._mark = self._sandbox.mark()
                self._fork = self._session.interpreter().fork("test", _FORK_SECONDS)
                self._fork.load_module("values")
            error, broken = check(self._fork, printed, self._seconds), False
        except _TimeLimitError:
            error = _TIME_LIMIT.format(self._seconds)
        except (InterpreterEndedError, InterpreterRefusedError) as e:
            error = str(e) or _INTERPRETER_ENDED
        if broken and self._fork is not None:
            self._sandbox.kill_since(self._mark, keep=self._session.own_pids)
            drain(self._fork.output, check.printed if isinstance(check, _ProgramCheck) else printed)
        if isinstance(check, _ProgramCheck):
            if error == _INTERPRETER_ENDED:  # a program may end its process
                error = check.verdict()
            printed.add(check.printed.bytes())
        if broken or isinstance(check, _ProgramCheck):
            self.close()
        return TestResult(text, not error, decode(printed.bytes()), error)

    def close(self) -> None:
        """Close the fork."""
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
    """A test that is an assert statement."""

    def __init__(self, test: SplitAssertion, clean: list[Any]) -> None:
        self._plan, self._clean = test, clean

    def __call__(self, fork: Interpreter, printed: Collector, timeout: float) -> str:
        expressions = self._plan.agent_expressions
        text = _require_answer(fork.request("values", expressions, into=printed, timeout=timeout))
        try:
            values = decode_values(text, len(expressions))
            for value in values:
                if isinstance(value, ExceptionInfo):
                    return str(value)
            return "" if self._plan.holds(values, self._clean) else "AssertionError"
        except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as e:
            return _NOT_COMPARABLE.format(e)


class _CallCheck:
    """A test that is a call with the expected value, compared as APPS does."""

    def __init__(self, entry: str, test: Mapping[str, Any]) -> None:
        self._entry, self._test = entry, test

    def __call__(self, fork: Interpreter, printed: Collector, timeout: float) -> str:
        arguments = with_integer_keys(list(self._test["input"]))
        text = fork.request("call", self._entry, arguments, into=printed, timeout=timeout)
        try:
            value = decode_value(_require_answer(text))
            if isinstance(value, ExceptionInfo):
                return str(value)
            return "" if same_value(value, self._test["output"]) else "AssertionError"
        except (TypeError, ValueError, RecursionError) as e:
            return _NOT_COMPARABLE.format(e)


class _ProgramCheck:
    """A test that is a program with its input and expected output, compared as APPS does.

    Only the standard output counts. More than the expected output and a margin is not kept.
    """

    def __init__(self, code: str, test: Mapping[str, Any]) -> None:
        self._code, self._input, self._expected = code, str(test["input"]), str(test["output"])
        self.printed = Collector(2 * len(self._expected.encode()) + _OUTPUT_MARGIN)

    def __call__(self, fork: Interpreter, printed: Collector, timeout: float) -> str:  # noqa: ARG002
        until = time.monotonic() + timeout
        fork.run_program(self._code, self._input, self.printed, timeout)
        drain(fork.output, self.printed)
        if time.monotonic() > until:
            raise _TimeLimitError
        return self.verdict()

    def verdict(self) -> str:
        """Return what is wrong with what the program printed; empty if nothing is."""
        if self.printed.dropped:
            return _TOO_MUCH_OUTPUT.format(self.printed.limit)
        same = same_output(decode(self.printed.bytes()), self._expected)
        return "" if same else "AssertionError"
