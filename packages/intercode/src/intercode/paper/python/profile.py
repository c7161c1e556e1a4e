"""The profile ``original`` of Python: what the authors' code does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from intercode.core.errors import GoldError, UsageError
from intercode.core.types import ExecResult, Score, State, Task, TestResult
from intercode.datasets.payloads import PythonPayload
from intercode.environments.base.episode_context import EpisodeContext
from intercode.environments.base.profiles import GOLD_SECONDS
from intercode.environments.python.env import PythonEnv
from intercode.environments.python.profiles import PythonProfile
from intercode.paper import PROFILE
from intercode.paper.python.session import ServiceAnswer, ServiceSession, run_in_service
from intercode.sessions.python.interpreter import InterpreterEndedError, InterpreterRefusedError
from intercode.sessions.python.session import PythonSession, PythonState
from intercode_sandbox.contract import BaseSandbox

_FORK_SECONDS = 30.0
_FUNCTION_DEFINITION = re.compile(r"def (\w+)\(")


class OriginalPythonProfile(PythonProfile):
    """Runs code as the authors' service does, and records the output and error of each test.

    The reward compares them with those of the gold. Tests of the agent run in a fork of its
    interpreter, tests of the gold in a fresh sandbox.
    """

    name: ClassVar[str] = PROFILE
    has_exploits: ClassVar[bool] = True
    runs_golds_separately: ClassVar[bool] = False
    follows_dataset: ClassVar[bool] = False
    _gold: list[State] | None = None

    def require_gold(self, task: Task) -> None:
        gold_function_name(task)

    def open_session(
        self, sandbox: BaseSandbox, task: Task, state: PythonState | None
    ) -> PythonSession:
        return ServiceSession(sandbox, task.cwd, self.program, state)

    def agent_state(
        self, episode: EpisodeContext, last: ExecResult | None, answer: str | None
    ) -> State:
        task, session = episode.task, episode.workspace.session
        assert isinstance(session, PythonSession)
        name, codes = answer.split()[0] if answer else _submitted_function_name(session), []
        if name is not None:
            codes.append(f"{gold_function_name(task)} = {name}")
        tests = run_tests_in_service(session, [*codes, *_setup_codes(task)], task)
        return State(last.output if last else "", answer=answer, tests=tests)

    def gold_states(self, episode: EpisodeContext) -> list[State]:
        if self._gold is None:
            task, workspace = episode.task, episode.open_workspace()
            try:
                assert isinstance(workspace.session, PythonSession)
                codes = [*_setup_codes(task), str(task.gold)]
                self._gold = [State(tests=run_tests_in_service(workspace.session, codes, task))]
            finally:
                workspace.close()
        return self._gold

    def load_gold(self, episode: EpisodeContext) -> None:
        """Replace the agent's namespace by that of the set-up and the gold.

        The authors' code does so when it grades an episode.
        """
        task, session = episode.task, episode.workspace.session
        assert isinstance(session, PythonSession)
        live = session.use_interpreter()
        run_in_service(live, [*_setup_codes(task), str(task.gold)], GOLD_SECONDS, reset=True)

    def close(self) -> None:
        self._gold = None


def run_tests_in_service(
    session: PythonSession, codes: Sequence[str], task: Task
) -> tuple[TestResult, ...]:
    """Run ``codes`` and then the tests of a task in a fork of an interpreter. Return the results.

    All tests together have a time limit, after which every test fails. The authors' service has
    none.
    """
    tests = [str(test) for test in PythonPayload.of(task).tests]
    answers: list[ServiceAnswer] | None = None
    try:
        fork = session.interpreter().fork("any", _FORK_SECONDS)
        try:
            answers = run_in_service(fork, [*codes, *tests], GOLD_SECONDS)
        finally:
            fork.kill()
            fork.close()
    except (InterpreterEndedError, InterpreterRefusedError):
        pass
    test_answers = (
        answers[len(codes) :] if answers else [(None, "Error: result expired")] * len(tests)
    )
    return tuple(
        TestResult(t, not error, out, error)
        for t, (out, error) in zip(tests, test_answers, strict=True)
    )


def _setup_codes(task: Task) -> list[str]:
    setup = PythonPayload.of(task).setup
    return [setup] if setup else []


def _submitted_function_name(session: PythonSession) -> str | None:
    """Return the name that the authors' runner submits: the function of the last action that begins
    with ``def``."""
    for action in reversed(session.actions):
        match = _FUNCTION_DEFINITION.match(action.code)
        if match:
            return match[1]
    return None


def gold_function_name(task: Task) -> str:
    """Return the name of the gold's function as the authors' code finds it: the first ``def``.

    Raises GoldError if there is none. Their code ends the episode in this case.
    """
    match = _FUNCTION_DEFINITION.search(str(task.gold))
    if match is None:
        raise GoldError(f"the authors' code finds no function's name in the gold of {task.id}")
    return match[1]


def score_and_load_gold(env: PythonEnv) -> Score:
    """Score as the authors' runner does after an action that begins with ``def``.

    Afterwards the namespace holds the set-up and the gold, and nothing of the agent's. Raises
    UsageError in another profile than ``original``.
    """
    profile = env._profile_impl
    if not isinstance(profile, OriginalPythonProfile):
        raise UsageError("score_and_load_gold needs the original profile: use score")
    score = env.score()
    profile.load_gold(env.context)
    return score
