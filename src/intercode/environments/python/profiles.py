"""The two ways of playing and judging Python: as it was meant, and as the authors' code does it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol

from intercode.core.errors import GoldError
from intercode.core.types import ExecResult, State, Task, TestRun
from intercode.environments.base.workspaces import Place
from intercode.environments.python.grading import Grader
from intercode.sandbox.supervisor.client import KeptSandbox
from intercode.sessions.python.interpreter import InterpreterEndedError
from intercode.sessions.python.original import Answer, ServiceSession, serve
from intercode.sessions.python.session import PythonSession
from intercode.sessions.python.state import PythonState

GOLD_SECONDS = 120.0
_FORK_SECONDS = 30.0
_DEFINED = re.compile(r"def (\w+)\(")
OpenPlace = Callable[[], Place]


class PythonProfile(Protocol):
    """What differs between the profiles. An instance belongs to one environment."""

    def open_session(
        self, box: KeptSandbox, task: Task, state: PythonState | None
    ) -> PythonSession:
        """The session in which the agent's actions run."""
        ...

    def agent_state(
        self, place: Place, last: ExecResult | None, task: Task, answer: str | None
    ) -> State:
        """What the agent has left behind, its tests run, without touching it."""
        ...

    def gold_states(self, task: Task) -> list[State]:
        """What the gold leaves behind."""
        ...

    def close(self) -> None:
        """Forget what was kept for the episode."""
        ...


class Standard:
    """An interpreter as at a prompt; tests are run in a fresh box on what the agent wrote, and a
    test is passed or it is not: the gold need not run. ``seconds`` are for each test, ``patience``
    for an action that is run again."""

    def __init__(
        self, program: str, open_place: OpenPlace, seconds: float, patience: float
    ) -> None:
        self._program, self._open_place = program, open_place
        self._limits = seconds, patience
        self._graded: tuple[tuple[object, ...], tuple[TestRun, ...]] | None = None

    def open_session(
        self, box: KeptSandbox, task: Task, state: PythonState | None
    ) -> PythonSession:
        return PythonSession(box, task.cwd, self._program, state)

    def agent_state(
        self, place: Place, last: ExecResult | None, task: Task, answer: str | None
    ) -> State:
        session = place.session
        assert isinstance(session, PythonSession)
        key = (task.id, session.actions, answer)
        if self._graded is None or self._graded[0] != key:
            grader = Grader(task, self._open_place, *self._limits)
            self._graded = (key, grader.grade(session.actions, answer))
        output = last.output if last else ""
        return State(output, cwd=session.cwd, answer=answer, tests=self._graded[1])

    def gold_states(self, task: Task) -> list[State]:  # noqa: ARG002
        return [State()]

    def close(self) -> None:
        self._graded = None


class Original:
    """The authors' service: what a test prints and how it fails is compared with the gold's. Tests
    run on a copy of the agent's interpreter, the gold in a fresh box."""

    def __init__(self, program: str, open_place: OpenPlace) -> None:
        self._program, self._open_place = program, open_place
        self._gold: list[State] | None = None

    def open_session(
        self, box: KeptSandbox, task: Task, state: PythonState | None
    ) -> PythonSession:
        return ServiceSession(box, task.cwd, self._program, state)

    def agent_state(
        self, place: Place, last: ExecResult | None, task: Task, answer: str | None
    ) -> State:
        session = place.session
        assert isinstance(session, PythonSession)
        name, codes = answer.split()[0] if answer else _last_defined(session), []
        if name is not None:
            codes.append(f"{_first_defined(task)} = {name}")
        tests = tested(session, [*codes, *_prepared(task)], task)
        return State(last.output if last else "", answer=answer, tests=tests)

    def gold_states(self, task: Task) -> list[State]:
        if self._gold is None:
            place = self._open_place()
            try:
                assert isinstance(place.session, PythonSession)
                codes = [*_prepared(task), str(task.gold)]
                self._gold = [State(tests=tested(place.session, codes, task))]
            finally:
                place.close()
        return self._gold

    def load_gold(self, place: Place, task: Task) -> None:
        """Leave the agent's namespace as their grading does: the set-up and the gold in it, and
        nothing of the agent's."""
        assert isinstance(place.session, PythonSession)
        live = place.session.touch()
        serve(live, [*_prepared(task), str(task.gold)], GOLD_SECONDS, reset=True)

    def close(self) -> None:
        self._gold = None


def tested(session: PythonSession, codes: Sequence[str], task: Task) -> tuple[TestRun, ...]:
    """What the service answers to a task's tests, in a fork of an interpreter that runs some code
    first. Their service has no time limit; ours has one for all of it, and answers nothing then."""
    tests = [str(test) for test in task.data.get("tests", ())]
    answers: list[Answer] | None = None
    try:
        fork = session.interpreter().fork("any", _FORK_SECONDS)
        try:
            answers = serve(fork, [*codes, *tests], GOLD_SECONDS)
        finally:
            fork.kill()
            fork.close()
    except InterpreterEndedError:
        pass
    ends = answers[len(codes) :] if answers else [(None, "Error: result expired")] * len(tests)
    return tuple(
        TestRun(t, not error, out, error) for t, (out, error) in zip(tests, ends, strict=True)
    )


def _prepared(task: Task) -> list[str]:
    setup = str(task.data.get("setup") or "")
    return [setup] if setup else []


def _last_defined(session: PythonSession) -> str | None:
    """The name that their runner submits: that of the last action that begins with ``def``."""
    for action in reversed(session.actions):
        found = _DEFINED.match(action.code)
        if found:
            return found[1]
    return None


def _first_defined(task: Task) -> str:
    """The name that their code takes for the gold's. Raises GoldError where it finds none, which
    ends an episode of theirs."""
    found = _DEFINED.search(str(task.gold))
    if found is None:
        raise GoldError(f"the authors' code finds no function's name in the gold of {task.id}")
    return found[1]
