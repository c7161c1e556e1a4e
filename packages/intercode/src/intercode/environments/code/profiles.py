"""The profile ``standard`` of Code, with its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from intercode.core.errors import GoldError
from intercode.core.languages import LANGUAGES, Language, load_language
from intercode.core.settings import setting
from intercode.core.types import ExecResult, State, Task, TestResult
from intercode.datasets.payloads import CodePayload
from intercode.environments.base.episode_context import EpisodeContext
from intercode.environments.base.profiles import Profile
from intercode.environments.base.settings import SandboxSettings, is_recorded_timeout
from intercode.environments.code.grading import grade_code, hidden_tests
from intercode.sessions.base import Session, SessionState
from intercode.sessions.programs.program import ProgramSession
from intercode.sessions.programs.repl import ReplSession
from intercode_sandbox.contract import BaseSandbox

_RERUN_TIMEOUT_FACTOR = 2  # how many times as long an action may take when it is run again


@dataclass(frozen=True, kw_only=True)
class CodeSettings(SandboxSettings):
    """The settings of Code."""

    language: str | None = setting(
        None,
        "the language of tasks that name none",
        recorded=True,
        from_record=lambda v: v is None or (isinstance(v, str) and v in LANGUAGES),
    )
    test_timeout: float = setting(
        None,
        "seconds per test; none: as for an action",
        recorded=True,
        from_record=is_recorded_timeout,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.language is not None:
            load_language(self.language)
        self._check_seconds("test_timeout")
        self._set(test_timeout=self.test_timeout or self.timeout)


class CodeProfile(Profile):
    """Runs actions in an interpreter or as whole programs, and the tests in a fresh sandbox.

    ``rerun_timeout``: seconds for each action that is run again.
    """

    def __init__(self, settings: CodeSettings) -> None:
        self._language, self._test_timeout = settings.language, settings.test_timeout
        self.rerun_timeout = _RERUN_TIMEOUT_FACTOR * settings.timeout
        self._test_results: tuple[tuple[object, ...], tuple[TestResult, ...]] | None = None

    def language_name(self, task: Task) -> str:
        """Return the name of a task's language. Raises GoldError if it has none."""
        name = CodePayload.of(task).language or self._language
        if not name:
            raise GoldError(f"{task.id} names no language: give one with `language`")
        return name

    def language(self, task: Task) -> Language:
        """Return the language of a task. Raises as ``language_name``."""
        return load_language(self.language_name(task))

    def session_key(self, task: Task) -> Any:
        payload = CodePayload.of(task)
        return payload.language, bool(payload.entry), payload.example

    def open_session(self, sandbox: BaseSandbox, task: Task, state: SessionState | None) -> Session:
        language, payload = self.language(task), CodePayload.of(task)
        if not payload.entry:
            return ProgramSession(sandbox, language, task.cwd, payload.example, state)
        if language.repl is None:
            why = f"{language.title} has no live interpreter here"
            raise GoldError(f"the tests of {task.id} call a function, but {why}")
        return ReplSession(sandbox, language, task.cwd, state, self.rerun_timeout)

    def agent_state(
        self, episode: EpisodeContext, last: ExecResult | None, answer: str | None
    ) -> State:
        session = episode.workspace.session
        key = (episode.task.id, code := _submitted_code(session))
        if self._test_results is None or self._test_results[0] != key:
            tests = grade_code(episode, code, self._test_timeout, self.rerun_timeout)
            self._test_results = key, tests
        output = last.output if last else ""
        return State(output, cwd=session.cwd, answer=answer, tests=self._test_results[1])

    def gold_states(self, episode: EpisodeContext) -> list[State]:
        hidden_tests(episode.task)  # raises GoldError if there are none
        return [State()]

    def close(self) -> None:
        self._test_results = None


def _submitted_code(session: Session) -> tuple[str, ...]:
    """Return the agent's code: the actions of its interpreter, or its last program."""
    if isinstance(session, ReplSession):
        return session.actions
    assert isinstance(session, ProgramSession)
    return () if session.program is None else (session.program,)
