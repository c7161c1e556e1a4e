"""Runs a task's hidden tests on code in any language.

The tests run in a fresh sandbox on the image and files of the task, without those that
``absent_in_tests`` names. It gets the agent's code and nothing else. The code under test
learns the input of a test and never the expected output: what it printed or returned is compared
outside the sandbox.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from intercode.core.errors import GoldError, SandboxError, SandboxLostError
from intercode.core.types import Task, TestResult
from intercode.core.types.untrusted import MAX_RETURNED_VALUES, parse_untrusted
from intercode.datasets.payloads import CodePayload
from intercode.environments.base.episode_context import EpisodeContext
from intercode.environments.base.workspaces import SandboxWorkspace
from intercode.environments.code.reward import outputs_equal, values_equal
from intercode.sessions.programs.program import ProgramSession
from intercode.sessions.programs.repl import ReplEndedError, ReplSession
from intercode_sandbox.long_output import Collector
from intercode_sandbox.streams import decode

_COMPILE_SECONDS = 60.0
_MAX_ERROR = 500  # characters of an error in a test's result
_NO_CODE, _WRONG_ANSWER, _INTERPRETER_ENDED = (
    "nothing was written",
    "another answer",
    "the interpreter ended",
)
_TIME_LIMIT = "over the time limit of {:g} s"


def hidden_tests(task: Task) -> Sequence[Mapping[str, Any]]:
    """Return the hidden tests. Raises GoldError for a task without tests."""
    tests = CodePayload.of(task).tests
    if not tests:
        raise GoldError(f"{task.id} has no tests: nothing to grade with")
    return tests


def grade_code(
    episode: EpisodeContext, code: Sequence[str], test_timeout: float, rerun_timeout: float
) -> tuple[TestResult, ...]:
    """Return the result of each test on the agent's code: a program, or an interpreter's actions.

    They run in a new workspace. ``test_timeout`` is in seconds for each test, ``rerun_timeout`` for
    each action that is run again. Raises GoldError, SandboxLostError, and SandboxError if the image
    lacks the language.
    """
    task = episode.task
    tests = hidden_tests(task)
    if not code:
        return _fail_all(tests, _NO_CODE)
    workspace = episode.open_test_workspace()
    try:
        if isinstance(workspace.session, ReplSession):
            return _grade_calls(task, workspace.session, code, test_timeout, rerun_timeout)
        assert isinstance(workspace.session, ProgramSession)
        return _grade_program(tests, workspace, code[-1], test_timeout)
    finally:
        workspace.close()


def _fail_all(tests: Sequence[Mapping[str, Any]], why: str) -> tuple[TestResult, ...]:
    return tuple(TestResult(_test_text(test), False, error=why) for test in tests)


def _test_text(test: Mapping[str, Any]) -> str:
    return json.dumps(test["input"], ensure_ascii=False)


# -------------------------------------------------------------------- programs
def _grade_program(
    tests: Sequence[Mapping[str, Any]], workspace: SandboxWorkspace, program: str, timeout: float
) -> tuple[TestResult, ...]:
    session = workspace.session
    assert isinstance(session, ProgramSession)
    try:
        built = session.build(program, _COMPILE_SECONDS)
    except OSError as e:
        return _fail_all(tests, f"the program cannot be written down: {e}")
    if not built.ok:
        why = built.output.strip() or "out of time or memory"
        return _fail_all(tests, f"it does not compile: {why[:_MAX_ERROR]}")
    return tuple(_run_program_test(workspace, session, test, timeout) for test in tests)


def _run_program_test(
    workspace: SandboxWorkspace, session: ProgramSession, test: Mapping[str, Any], timeout: float
) -> TestResult:
    collector = Collector(workspace.sandbox.spec.limits.output)
    try:
        status = session.execute(str(test["input"]), collector, timeout)
    except OSError as e:
        return TestResult(_test_text(test), False, error=f"it cannot be run: {e}")
    printed = decode(collector.bytes())
    if status is None:
        error = _TIME_LIMIT.format(timeout)
    elif status != 0:
        error = f"exit status {status}"
    elif collector.dropped:
        error = "it printed too much"
    else:
        error = "" if outputs_equal(printed, str(test["output"])) else _WRONG_ANSWER
    return TestResult(_test_text(test), not error, printed, error)


# ----------------------------------------------------------------------- calls
def _grade_calls(
    task: Task, session: ReplSession, actions: Sequence[str], timeout: float, rerun_timeout: float
) -> tuple[TestResult, ...]:
    tests, entry = hidden_tests(task), CodePayload.of(task).entry
    if not entry:
        raise GoldError(f"{task.id} names no entry: the function that its tests call")
    for code in actions:
        session.run(code, rerun_timeout)
    runs = []
    for test in tests:
        collector = Collector(session.output_limit)
        error = _call_error(session, entry, test, collector, timeout)
        runs.append(TestResult(_test_text(test), not error, decode(collector.bytes()), error))
    return tuple(runs)


def _call_error(
    session: ReplSession, entry: str, test: Mapping[str, Any], collector: Collector, timeout: float
) -> str:
    """Return what is wrong with a call; empty if it returned the expected value.

    After a call that did not return, the interpreter is restarted.
    """
    try:
        answer = session.call(entry, list(test["input"]), collector, timeout)
        error = _TIME_LIMIT.format(timeout)
    except ReplEndedError:
        answer, error = None, _INTERPRETER_ENDED
    if answer is None:
        _restart(session)
        return error
    if "error" in answer:
        return str(answer["error"])[:_MAX_ERROR] or _WRONG_ANSWER
    try:
        value = parse_untrusted(answer["value"], MAX_RETURNED_VALUES)
        return "" if values_equal(value, test["output"]) else _WRONG_ANSWER
    except (KeyError, TypeError, ValueError, RecursionError) as e:  # also of the comparison
        return f"what it returned cannot be compared: {e}"


def _restart(session: ReplSession) -> None:
    try:
        session.restart()
    except SandboxLostError:
        raise
    except SandboxError:
        return  # the next call then finds no interpreter
