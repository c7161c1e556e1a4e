"""The Code environment: write a program or a function in any language of the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from intercode.core.errors import GoldError
from intercode.core.languages import LANGUAGES, PROGRAM_DIRECTORY, Language, load_language
from intercode.core.settings import setting
from intercode.core.types import (
    ActionLanguage,
    Brief,
    EnvironmentDescription,
    ExecResult,
    Layer,
    Payload,
    State,
    Task,
    TestResult,
    Typing,
)
from intercode.datasets.payloads import CodePayload
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.environments.base.settings import SandboxSettings, is_recorded_timeout
from intercode.environments.base.snapshots.storage import SavedWorkspace, StoredSnapshot
from intercode.environments.base.workspaces import SandboxWorkspace, closed_on_error
from intercode.environments.code.grading import grade_code, hidden_tests
from intercode.sessions.base import Session, SessionState
from intercode.sessions.programs.program import RERUN_COMMAND, ProgramSession
from intercode.sessions.programs.repl import ReplSession
from intercode_sandbox import SandboxSpec
from intercode_sandbox.contract import BaseSandbox

_RERUN_TIMEOUT_FACTOR = 2  # how many times as long an action may take when it is run again
_PROGRAM_NOTES = (
    "Every action is a whole program in {title}: it is compiled and run, and you see what it says. "
    "{notes} Your last program is what is tested: what it prints for other inputs is compared, and "
    f"it must end with status 0. An action whose first line is `{RERUN_COMMAND}` gives the lines "
    "below it to the last program as its input."
)
_REPL_NOTES = "Actions are {title}, as at a prompt: what you define stays. {notes} Define {entry}."
_TYPING = Typing(
    unfinished="intercode.environments.languages.typing_rules:is_unfinished_program",
    help_note=" (an empty line ends a program)",
    lexer="BashLexer",
)
_ERRORS = "intercode.environments.languages.errors:shell_error"
_EXAMPLE_NOTES = "It is run on this input, unless you give another:\n{}"


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


class CodeEnv(SandboxedEnv):
    """Write a program or a function in the language of the task; the reward is the share of hidden
    tests that pass.

    The task names the language (column ``language``). If the tests call a function
    (column ``entry``), actions run in one interpreter. Otherwise each action is a whole program
    that reads the column ``example``, and the last one is tested. Tests run in a fresh sandbox that
    gets the code and nothing else; see grading.py.
    """

    settings_class: ClassVar[type[CodeSettings]] = CodeSettings
    settings: CodeSettings

    name: ClassVar[str] = "code"
    payload_type: ClassVar[type[Payload]] = CodePayload
    description: ClassVar[EnvironmentDescription] = EnvironmentDescription(
        ActionLanguage("code", typing=_TYPING, error_class=_ERRORS),
        judged="Your code is judged by tests that you do not see.",
        tool="run_code",
        argument="code",
        answer="",
        judges_code=True,
        gold_is_hidden=True,
        example_action="1 + 1",
    )

    _test_results: tuple[tuple[object, ...], tuple[TestResult, ...]] | None = None

    def brief_of(self, task: Task) -> Brief:
        brief, language = super().brief_of(task), self._language(task)
        payload = CodePayload.of(task)
        instructions = (_REPL_NOTES if payload.entry else _PROGRAM_NOTES).format(
            title=language.title, notes=language.notes, entry=payload.entry
        )
        example = _EXAMPLE_NOTES.format(payload.example) if payload.example else ""
        notes = "\n".join(filter(None, (instructions, example, brief.notes)))
        return replace(brief, notes=notes)

    def description_of(self, task: Task) -> EnvironmentDescription:
        """Return the description with the language of the task."""
        name, found = self._language_name(task), self._language(task)
        tags = found.tags or (found.title.lower(),)
        language = replace(self.description.language, name=name, title=found.title, tags=tags)
        return replace(self.description, language=language)

    def _language_name(self, task: Task) -> str:
        """Return the name of a task's language."""
        name = CodePayload.of(task).language or self.settings.language
        if not name:
            raise GoldError(f"{task.id} names no language: give one with `language`")
        return name

    def _language(self, task: Task) -> Language:
        return load_language(self._language_name(task))

    @property
    def _prewarm_key(self) -> Any:
        payload = CodePayload.of(self.task)
        return super()._prewarm_key, payload.language, bool(payload.entry), payload.example

    def _make_spec(self, layers: tuple[Layer, ...]) -> SandboxSpec:
        return SandboxSpec(self.image, layers, network=self.network)

    def _open_session(
        self, sandbox: BaseSandbox, task: Task, state: SessionState | None
    ) -> Session:
        language, payload = self._language(task), CodePayload.of(task)
        if not payload.entry:
            return ProgramSession(sandbox, language, task.cwd, payload.example, state)
        if language.repl is None:
            why = f"{language.title} has no live interpreter here"
            raise GoldError(f"the tests of {task.id} call a function, but {why}")
        return ReplSession(sandbox, language, task.cwd, state, _RERUN_TIMEOUT_FACTOR * self.timeout)

    def changed_paths(self) -> list[str]:
        """Return the changed paths without the program itself."""
        program = f"{PROGRAM_DIRECTORY}/"
        return [path for path in super().changed_paths() if not f"{path}/".startswith(program)]

    def _agent_state(self, last: ExecResult | None, answer: str | None) -> State:
        session = self._current_workspace.session
        key = (self.task.id, code := _submitted_code(session))
        if self._test_results is None or self._test_results[0] != key:
            limits = self.settings.test_timeout, _RERUN_TIMEOUT_FACTOR * self.timeout
            self._test_results = (
                key,
                grade_code(self._episode, code, *limits),
            )
        output = last.output if last else ""
        return State(output, cwd=session.cwd, answer=answer, tests=self._test_results[1])

    def _gold_states(self, task: Task) -> list[State]:
        hidden_tests(task)  # raises GoldError if there are none
        return [State()]

    def end_episode(self) -> None:
        self._test_results = None
        super().end_episode()

    # --------------------------------------------------------------- snapshots
    def _capture(self) -> tuple[Any, tuple[str, ...], Callable[[], None]]:
        """Capture an interpreter by its actions and its files.

        Restoring runs the actions again, and then replaces the files by the captured ones.
        """
        workspace = self._current_workspace
        if not isinstance(workspace.session, ReplSession):
            return super()._capture()
        omitted, files = (
            workspace.session.other_processes(workspace.sandbox.processes()),
            workspace.sandbox.snapshot(),
        )
        saved = SavedWorkspace(self._spec, files, workspace.session.state())
        return saved, omitted, files.close

    def _restore_workspace(self, captured: Any, consume: bool = False) -> SandboxWorkspace:
        if not CodePayload.of(self.task).entry:
            return super()._restore_workspace(captured, consume)
        if isinstance(captured, StoredSnapshot):
            captured = captured.workspace(self._spec_for(self.task), self.backend)
        self._spec, state = captured.spec, captured.state
        with closed_on_error(self._acquire_workspace()) as workspace:
            session = workspace.session
            assert isinstance(session, ReplSession)
            session.rerun(state, _RERUN_TIMEOUT_FACTOR * self.timeout)
            workspace.sandbox.restore(captured.files)
            session.change_directory(state.cwd)
        return workspace


def _submitted_code(session: Session) -> tuple[str, ...]:
    """Return the agent's code: the actions of its interpreter, or its last program."""
    if isinstance(session, ReplSession):
        return session.actions
    assert isinstance(session, ProgramSession)
    return () if session.program is None else (session.program,)
