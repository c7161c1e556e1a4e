"""The Code environment: write a program or a function in any language of the table."""

from __future__ import annotations

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
from intercode.environments.base.episode import Capture, Snapshots
from intercode.environments.base.sandboxed_env import FileSnapshots, SandboxedEnv
from intercode.environments.base.snapshots.storage import SavedWorkspace
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


class ProgramSnapshots(FileSnapshots):
    """Saves an interpreter by its actions and its files.

    Restoring runs the actions again, and then replaces the files by the saved ones.
    """

    env: CodeEnv

    def capture(self) -> Capture:
        workspace = self.env.context.workspace
        if not isinstance(workspace.session, ReplSession):
            return super().capture()
        omitted, files = (
            workspace.session.other_processes(workspace.sandbox.processes()),
            workspace.sandbox.snapshot(),
        )
        saved = SavedWorkspace(self.env.context.spec, files, workspace.session.state())
        return saved, omitted, files.close

    def restore(self, captured: Any, consume: bool = False) -> SandboxWorkspace:
        if not CodePayload.of(self.env.task).entry:
            return super().restore(captured, consume)
        saved = self.saved_workspace(captured)
        with closed_on_error(self.env.open_workspace()) as workspace:
            session = workspace.session
            assert isinstance(session, ReplSession)
            session.rerun(saved.state, self.env._profile_impl.rerun_timeout)
            workspace.sandbox.restore(saved.files)
            session.change_directory(saved.state.cwd)
        return workspace


class CodeEnv(SandboxedEnv):
    """Write a program or a function in the language of the task; the reward is the share of hidden
    tests that pass.

    The task names the language (column ``language``). If the tests call a function
    (column ``entry``), actions run in one interpreter. Otherwise each action is a whole program
    that reads the column ``example``, and the last one is tested. Tests run in a fresh sandbox that
    gets the code and nothing else; see grading.py.

    >>> from intercode.environments import CodeEnv
    >>> with CodeEnv("starter") as env:
    ...     _ = env.reset(seed=1)
    ...     for action in env.task.solution_actions:
    ...         observation, reward, terminated, truncated, info = env.step(action)
    ...     print(env.score().value)
    1.0
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
    snapshots_class: ClassVar[type[Snapshots]] = ProgramSnapshots
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
