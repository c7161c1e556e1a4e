"""Runs a task's hidden tests on code in any language.

In a fresh box on the image and the files of the task: the agent's code comes there and nothing else
of its box. What a test puts in is known to the code under test, what should come out never is: the
box is asked what the code printed or returned, and that is compared out here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from intercode.core.errors import GoldError, SandboxError, SandboxLostError
from intercode.core.types import Task, TestResult
from intercode.environments.base.workspaces import Workspace
from intercode.environments.code.reward import outputs_equal, values_equal
from intercode.sandbox.output import Collector, decode
from intercode.sessions.programs.program import ProgramSession
from intercode.sessions.programs.repl import ReplEndedError, ReplSession

OpenPlace = Callable[[], Workspace]
_COMPILE_SECONDS = 60.0
_MAX_ERROR = 500  # characters of an error that are kept
_NO_CODE, _WRONG_ANSWER, _INTERPRETER_ENDED = (
    "nothing was written",
    "another answer",
    "the interpreter ended",
)
_TIME_LIMIT = "over the time limit of {:g} s"


def hidden_tests(task: Task) -> Sequence[Mapping[str, Any]]:
    """The hidden tests. Raises GoldError for a task without any, or with one in another form."""
    tests: Sequence[Any] = task.data.get("tests", ())
    if not tests:
        raise GoldError(f"{task.id} has no tests: nothing to grade with")
    for test in tests:
        if not isinstance(test, Mapping) or not {"input", "output"} <= test.keys():
            raise GoldError(f"{task.id}: a test has an input and an output, not {test!r}")
    return tests


def grade_code(
    task: Task,
    written: Sequence[str],
    open_place: OpenPlace,
    test_timeout: float,
    rerun_timeout: float,
) -> tuple[TestResult, ...]:
    """How each test goes with what was written: a program, or the actions of an interpreter.

    ``open_place`` opens a fresh box with its session; ``seconds`` are for each test, ``patience``
    for each action that is run again. Raises GoldError, SandboxLostError, and SandboxError where
    the image lacks the language.
    """
    tests = hidden_tests(task)
    if not written:
        return _fail_all(tests, _NO_CODE)
    place = open_place()
    try:
        if isinstance(place.session, ReplSession):
            return _grade_calls(task, place.session, written, test_timeout, rerun_timeout)
        assert isinstance(place.session, ProgramSession)
        return _grade_program(tests, place, written[-1], test_timeout)
    finally:
        place.close()


def _fail_all(tests: Sequence[Mapping[str, Any]], why: str) -> tuple[TestResult, ...]:
    return tuple(TestResult(_test_text(test), False, error=why) for test in tests)


def _test_text(test: Mapping[str, Any]) -> str:
    return json.dumps(test["input"], ensure_ascii=False)


# -------------------------------------------------------------------- programs
def _grade_program(
    tests: Sequence[Mapping[str, Any]], place: Workspace, program: str, seconds: float
) -> tuple[TestResult, ...]:
    session = place.session
    assert isinstance(session, ProgramSession)
    try:
        built = session.build(program, _COMPILE_SECONDS)
    except OSError as e:
        return _fail_all(tests, f"the program cannot be written down: {e}")
    if not built.ok:
        why = built.output.strip() or "out of time or memory"
        return _fail_all(tests, f"it does not compile: {why[:_MAX_ERROR]}")
    return tuple(_run_program_test(place, session, test, seconds) for test in tests)


def _run_program_test(
    place: Workspace, session: ProgramSession, test: Mapping[str, Any], seconds: float
) -> TestResult:
    said = Collector(place.sandbox.spec.limits.output)
    try:
        status = session.execute(str(test["input"]), said, seconds)
    except OSError as e:
        return TestResult(_test_text(test), False, error=f"it cannot be run: {e}")
    printed = decode(said.bytes())
    if status is None:
        error = _TIME_LIMIT.format(seconds)
    elif status != 0:
        error = f"exit status {status}"
    elif said.dropped:
        error = "it printed too much"
    else:
        error = "" if outputs_equal(printed, str(test["output"])) else _WRONG_ANSWER
    return TestResult(_test_text(test), not error, printed, error)


# ----------------------------------------------------------------------- calls
def _grade_calls(
    task: Task, session: ReplSession, actions: Sequence[str], seconds: float, patience: float
) -> tuple[TestResult, ...]:
    tests, entry = hidden_tests(task), str(task.data.get("entry") or "")
    if not entry:
        raise GoldError(f"{task.id} names no entry: the function that its tests call")
    for code in actions:
        session.run(code, patience)
    runs = []
    for test in tests:
        said = Collector(session.output_limit)
        error = _call_error(session, entry, test, said, seconds)
        runs.append(TestResult(_test_text(test), not error, decode(said.bytes()), error))
    return tuple(runs)


def _call_error(
    session: ReplSession, entry: str, test: Mapping[str, Any], said: Collector, seconds: float
) -> str:
    """What is wrong with a call; empty where it returned what it should. After one that did not
    come back the interpreter begins anew."""
    try:
        answer = session.call(entry, list(test["input"]), said, seconds)
        error = _TIME_LIMIT.format(seconds)
    except ReplEndedError:
        answer, error = None, _INTERPRETER_ENDED
    if answer is None:
        _restart(session)
        return error
    if "error" in answer:
        return str(answer["error"])[:_MAX_ERROR] or _WRONG_ANSWER
    try:
        value = json.loads(answer["value"])
        return "" if values_equal(value, test["output"]) else _WRONG_ANSWER
    except (KeyError, TypeError, ValueError, RecursionError) as e:
        return f"what it returned cannot be compared: {e}"


def _restart(session: ReplSession) -> None:
    try:
        session.restart()
    except SandboxLostError:
        raise
    except SandboxError:
        return  # the next call then finds no interpreter
