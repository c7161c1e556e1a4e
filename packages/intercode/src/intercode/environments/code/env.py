"""The Code environment: write a program or a function in any language of the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

from intercode.core.languages import PROGRAM_DIRECTORY
from intercode.core.types import (
    ActionLanguage,
    Brief,
    EnvironmentDescription,
    Payload,
    Task,
    Typing,
)
from intercode.datasets.payloads import CodePayload
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.environments.base.snapshots.storage import SavedWorkspace, StoredSnapshot
from intercode.environments.base.workspaces import SandboxWorkspace, closed_on_error
from intercode.environments.code.profiles import CodeProfile, CodeSettings
from intercode.sessions.programs.program import RERUN_COMMAND
from intercode.sessions.programs.repl import ReplSession

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
    standard_profile: ClassVar[type[CodeProfile]] = CodeProfile
    _profile_impl: CodeProfile

    def brief_of(self, task: Task) -> Brief:
        brief, language = super().brief_of(task), self._profile_impl.language(task)
        payload = CodePayload.of(task)
        instructions = (_REPL_NOTES if payload.entry else _PROGRAM_NOTES).format(
            title=language.title, notes=language.notes, entry=payload.entry
        )
        example = _EXAMPLE_NOTES.format(payload.example) if payload.example else ""
        notes = "\n".join(filter(None, (instructions, example, brief.notes)))
        return replace(brief, notes=notes)

    def description_of(self, task: Task) -> EnvironmentDescription:
        """Return the description with the language of the task."""
        name, found = self._profile_impl.language_name(task), self._profile_impl.language(task)
        tags = found.tags or (found.title.lower(),)
        language = replace(self.description.language, name=name, title=found.title, tags=tags)
        return replace(self.description, language=language)

    def changed_paths(self) -> list[str]:
        """Return the changed paths without the program itself."""
        program = f"{PROGRAM_DIRECTORY}/"
        return [path for path in super().changed_paths() if not f"{path}/".startswith(program)]

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
        with closed_on_error(self._episode.open_workspace()) as workspace:
            session = workspace.session
            assert isinstance(session, ReplSession)
            session.rerun(state, self._profile_impl.rerun_timeout)
            workspace.sandbox.restore(captured.files)
            session.change_directory(state.cwd)
        return workspace
