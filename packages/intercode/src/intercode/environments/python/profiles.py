"""The profile ``standard`` of Python, and what its other profiles implement."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import dataclass

from intercode.core.settings import setting
from intercode.core.types import ExecResult, State, Task, TestResult
from intercode.environments.base.episode_context import EpisodeContext
from intercode.environments.base.profiles import Profile
from intercode.environments.base.settings import SandboxSettings, is_recorded_timeout
from intercode.environments.python.grading import Grader
from intercode.sessions.python.session import PythonSession, PythonState
from intercode_sandbox.contract import BaseSandbox

_RERUN_TIMEOUT_FACTOR = 2  # how many times as long an action may take when it is run again


@dataclass(frozen=True, kw_only=True)
class PythonSettings(SandboxSettings):
    """The settings of Python."""

    interpreter: str = setting(
        "python3",
        "the program in the image, Python 3.7 or later",
        recorded=True,
        from_record=lambda v: isinstance(v, str) and bool(re.fullmatch(r"python3(\.\d+)?", v)),
    )
    test_timeout: float = setting(
        None,
        "seconds per test; none: as for an action",
        recorded=True,
        from_record=is_recorded_timeout,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_seconds("test_timeout")
        self._set(test_timeout=self.test_timeout or self.timeout)


class PythonProfile(Profile):
    """A profile of Python. ``program``: the interpreter in the image."""

    def __init__(self, settings: PythonSettings) -> None:
        self.program = settings.interpreter

    @abstractmethod
    def open_session(
        self, sandbox: BaseSandbox, task: Task, state: PythonState | None
    ) -> PythonSession:
        """Open the session in which the agent's actions run, from a state if one is given."""


class StandardPythonProfile(PythonProfile):
    """Runs actions in an interpreter, and the tests on the agent's code in a fresh sandbox.

    A test passes or fails without regard to the gold, which therefore does not run. Before the
    tests, the agent's actions run again in the fresh sandbox.
    """

    def __init__(self, settings: PythonSettings) -> None:
        super().__init__(settings)
        self._limits = settings.test_timeout, _RERUN_TIMEOUT_FACTOR * settings.timeout
        self._test_results: tuple[tuple[object, ...], tuple[TestResult, ...]] | None = None

    def open_session(
        self, sandbox: BaseSandbox, task: Task, state: PythonState | None
    ) -> PythonSession:
        return PythonSession(sandbox, task.cwd, self.program, state)

    def agent_state(
        self, episode: EpisodeContext, last: ExecResult | None, answer: str | None
    ) -> State:
        """Run the tests on a copy of the agent's state, and return the state with their results."""
        task, session = episode.task, episode.workspace.session
        assert isinstance(session, PythonSession)
        key = (task.id, session.actions, answer)
        if self._test_results is None or self._test_results[0] != key:
            grader = Grader(episode, *self._limits)
            self._test_results = (key, grader.grade(session.actions, answer))
        output = last.output if last else ""
        return State(output, cwd=session.cwd, answer=answer, tests=self._test_results[1])

    def gold_states(self, episode: EpisodeContext) -> list[State]:
        """Return the states of the gold, with which the reward compares the agent's state. Raises
        GoldError if the task has no tests, or some that cannot be judged."""
        Grader(episode, *self._limits)
        return [State()]

    def close(self) -> None:
        self._test_results = None
