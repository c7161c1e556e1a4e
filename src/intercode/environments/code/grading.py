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
from intercode.core.types import Task, TestRun
from intercode.environments.base.workspaces import Place
from intercode.environments.code.reward import same_printed, same_value
from intercode.sandbox.output import Collector, decode
from intercode.sessions.programs.program import ProgramSession
from intercode.sessions.programs.repl import ReplSession
from intercode.sessions.programs.repl_process import ReplEndedError

OpenPlace = Callable[[], Place]
_COMPILE_SECONDS = 60.0
_TOLD = 500  # characters of an error that are kept
_NOTHING, _WRONG, _ENDED = "nothing was written", "another answer", "the interpreter ended"
_LATE = "over the time limit of {:g} s"


def tests_of(task: Task) -> Sequence[Mapping[str, Any]]:
    """The hidden tests. Raises GoldError for a task without any, or with one in another form."""
    tests: Sequence[Any] = task.data.get("tests", ())
    if not tests:
        raise GoldError(f"{task.id} has no tests: nothing to grade with")
    for test in tests:
        if not isinstance(test, Mapping) or not {"input", "output"} <= test.keys():
            raise GoldError(f"{task.id}: a test has an input and an output, not {test!r}")
    return tests


def graded(
    task: Task, written: Sequence[str], open_place: OpenPlace, seconds: float, patience: float
) -> tuple[TestRun, ...]:
    """How each test goes with what was written: a program, or the actions of an interpreter.

    ``open_place`` opens a fresh box with its session; ``seconds`` are for each test, ``patience``
    for each action that is run again. Raises GoldError, SandboxLostError, and SandboxError where
    the image lacks the language.
    """
    tests = tests_of(task)
    if not written:
        return _all(tests, _NOTHING)
    place = open_place()
    try:
        if isinstance(place.session, ReplSession):
            return _called(task, place.session, written, seconds, patience)
        assert isinstance(place.session, ProgramSession)
        return _programs(tests, place, written[-1], seconds)
    finally:
        place.close()


def _all(tests: Sequence[Mapping[str, Any]], why: str) -> tuple[TestRun, ...]:
    return tuple(TestRun(_text(test), False, error=why) for test in tests)


def _text(test: Mapping[str, Any]) -> str:
    return json.dumps(test["input"], ensure_ascii=False)


# -------------------------------------------------------------------- programs
def _programs(
    tests: Sequence[Mapping[str, Any]], place: Place, program: str, seconds: float
) -> tuple[TestRun, ...]:
    session = place.session
    assert isinstance(session, ProgramSession)
    try:
        built = session.build(program, _COMPILE_SECONDS)
    except OSError as e:
        return _all(tests, f"the program cannot be written down: {e}")
    if not built.ok:
        why = built.output.strip() or "out of time or memory"
        return _all(tests, f"it does not compile: {why[:_TOLD]}")
    return tuple(_printed(place, session, test, seconds) for test in tests)


def _printed(
    place: Place, session: ProgramSession, test: Mapping[str, Any], seconds: float
) -> TestRun:
    said = Collector(place.box.spec.limits.output)
    try:
        status = session.execute(str(test["input"]), said, seconds)
    except OSError as e:
        return TestRun(_text(test), False, error=f"it cannot be run: {e}")
    printed = decode(said.bytes())
    if status is None:
        error = _LATE.format(seconds)
    elif status != 0:
        error = f"exit status {status}"
    elif said.cut:
        error = "it printed too much"
    else:
        error = "" if same_printed(printed, str(test["output"])) else _WRONG
    return TestRun(_text(test), not error, printed, error)


# ----------------------------------------------------------------------- calls
def _called(
    task: Task, session: ReplSession, actions: Sequence[str], seconds: float, patience: float
) -> tuple[TestRun, ...]:
    tests, entry = tests_of(task), str(task.data.get("entry") or "")
    if not entry:
        raise GoldError(f"{task.id} names no entry: the function that its tests call")
    for code in actions:
        session.run(code, patience)
    runs = []
    for test in tests:
        said = Collector(session.limit)
        error = _error_of(session, entry, test, said, seconds)
        runs.append(TestRun(_text(test), not error, decode(said.bytes()), error))
    return tuple(runs)


def _error_of(
    session: ReplSession, entry: str, test: Mapping[str, Any], said: Collector, seconds: float
) -> str:
    """What is wrong with a call; empty where it returned what it should. After one that did not
    come back the interpreter begins anew."""
    try:
        answer = session.call(entry, list(test["input"]), said, seconds)
        error = _LATE.format(seconds)
    except ReplEndedError:
        answer, error = None, _ENDED
    if answer is None:
        _begin_anew(session)
        return error
    if "error" in answer:
        return str(answer["error"])[:_TOLD] or _WRONG
    try:
        value = json.loads(answer["value"])
        return "" if same_value(value, test["output"]) else _WRONG
    except (KeyError, TypeError, ValueError, RecursionError) as e:
        return f"what it returned cannot be compared: {e}"


def _begin_anew(session: ReplSession) -> None:
    try:
        session.restart()
    except SandboxLostError:
        raise
    except SandboxError:
        return  # the next call then finds no interpreter
