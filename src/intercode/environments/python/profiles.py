"""The two profiles of Python: ``standard``, as the paper meant it, and ``original``, as the
authors' code does it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol

from intercode.core.errors import GoldError
from intercode.core.types import ExecResult, State, Task, TestResult
from intercode.environments.base.workspaces import Workspace
from intercode.environments.python.grading import Grader
from intercode.sandbox.contract import Sandbox
from intercode.sessions.python.interpreter import InterpreterEndedError
from intercode.sessions.python.original import ServiceAnswer, ServiceSession, run_in_service
from intercode.sessions.python.session import PythonSession, PythonState

GOLD_SECONDS = 120.0
_FORK_SECONDS = 30.0
_FUNCTION_DEFINITION = re.compile(r"def (\w+)\(")
OpenWorkspace = Callable[[], Workspace]


class PythonProfile(Protocol):
    """The differences between the profiles. An instance belongs to one environment."""

    def open_session(
        self, sandbox: Sandbox, task: Task, state: PythonState | None
    ) -> PythonSession:
        """Open the session in which the agent's actions run."""
        ...

    def agent_state(
        self, workspace: Workspace, last: ExecResult | None, task: Task, answer: str | None
    ) -> State:
        """Run the tests on the state that the agent has left, without changing it."""
        ...

    def gold_states(self, task: Task) -> list[State]:
        """Return the state that the gold leaves."""
        ...

    def close(self) -> None:
        """Forget what was computed for the episode."""
        ...


class StandardPythonProfile:
    """An interpreter as at a prompt. Tests run in a fresh sandbox on the agent's code. They pass or
    fail by themselves, so the gold need not run.

    ``test_timeout`` is in seconds for each test, ``rerun_timeout`` for an action that is run again.
    """

    def __init__(
        self, program: str, open_workspace: OpenWorkspace, test_timeout: float, rerun_timeout: float
    ) -> None:
        self._program, self._open_workspace = program, open_workspace
        self._limits = test_timeout, rerun_timeout
        self._test_results: tuple[tuple[object, ...], tuple[TestResult, ...]] | None = None

    def open_session(
        self, sandbox: Sandbox, task: Task, state: PythonState | None
    ) -> PythonSession:
        return PythonSession(sandbox, task.cwd, self._program, state)

    def agent_state(
        self, workspace: Workspace, last: ExecResult | None, task: Task, answer: str | None
    ) -> State:
        session = workspace.session
        assert isinstance(session, PythonSession)
        key = (task.id, session.actions, answer)
        if self._test_results is None or self._test_results[0] != key:
            grader = Grader(task, self._open_workspace, *self._limits)
            self._test_results = (key, grader.grade(session.actions, answer))
        output = last.output if last else ""
        return State(output, cwd=session.cwd, answer=answer, tests=self._test_results[1])

    def gold_states(self, task: Task) -> list[State]:  # noqa: ARG002
        return [State()]

    def close(self) -> None:
        self._test_results = None


class OriginalPythonProfile:
    """The authors' service: the output and the error of each test are compared with the gold's.

    Tests run on a fork of the agent's interpreter, the gold in a fresh sandbox.
    """

    def __init__(self, program: str, open_workspace: OpenWorkspace) -> None:
        self._program, self._open_workspace = program, open_workspace
        self._gold: list[State] | None = None

    def open_session(
        self, sandbox: Sandbox, task: Task, state: PythonState | None
    ) -> PythonSession:
        return ServiceSession(sandbox, task.cwd, self._program, state)

    def agent_state(
        self, workspace: Workspace, last: ExecResult | None, task: Task, answer: str | None
    ) -> State:
        session = workspace.session
        assert isinstance(session, PythonSession)
        name, codes = answer.split()[0] if answer else _submitted_function_name(session), []
        if name is not None:
            codes.append(f"{_gold_function_name(task)} = {name}")
        tests = run_tests_in_service(session, [*codes, *_setup_codes(task)], task)
        return State(last.output if last else "", answer=answer, tests=tests)

    def gold_states(self, task: Task) -> list[State]:
        if self._gold is None:
            workspace = self._open_workspace()
            try:
                assert isinstance(workspace.session, PythonSession)
                codes = [*_setup_codes(task), str(task.gold)]
                self._gold = [State(tests=run_tests_in_service(workspace.session, codes, task))]
            finally:
                workspace.close()
        return self._gold

    def load_gold(self, workspace: Workspace, task: Task) -> None:
        """Leave the agent's namespace as the authors' grading does: with the set-up and the
        gold, and nothing of the agent's."""
        assert isinstance(workspace.session, PythonSession)
        live = workspace.session.use_interpreter()
        run_in_service(live, [*_setup_codes(task), str(task.gold)], GOLD_SECONDS, reset=True)

    def close(self) -> None:
        self._gold = None


def run_tests_in_service(
    session: PythonSession, codes: Sequence[str], task: Task
) -> tuple[TestResult, ...]:
    """Return the service's answers to a task's tests, in a fork of an interpreter that runs
    ``codes`` first.

    The authors' service has no time limit. Ours has one for all tests together, after which every
    test fails.
    """
    tests = [str(test) for test in task.data.get("tests", ())]
    answers: list[ServiceAnswer] | None = None
    try:
        fork = session.interpreter().fork("any", _FORK_SECONDS)
        try:
            answers = run_in_service(fork, [*codes, *tests], GOLD_SECONDS)
        finally:
            fork.kill()
            fork.close()
    except InterpreterEndedError:
        pass
    test_answers = (
        answers[len(codes) :] if answers else [(None, "Error: result expired")] * len(tests)
    )
    return tuple(
        TestResult(t, not error, out, error)
        for t, (out, error) in zip(tests, test_answers, strict=True)
    )


def _setup_codes(task: Task) -> list[str]:
    setup = str(task.data.get("setup") or "")
    return [setup] if setup else []


def _submitted_function_name(session: PythonSession) -> str | None:
    """Return the name that the authors' runner submits: that of the last action that begins with
    ``def``."""
    for action in reversed(session.actions):
        found = _FUNCTION_DEFINITION.match(action.code)
        if found:
            return found[1]
    return None


def _gold_function_name(task: Task) -> str:
    """Return the name that the authors' code takes for the gold's function.

    Raises GoldError where it finds none, which ends an episode in their code.
    """
    found = _FUNCTION_DEFINITION.search(str(task.gold))
    if found is None:
        raise GoldError(f"the authors' code finds no function's name in the gold of {task.id}")
    return found[1]
