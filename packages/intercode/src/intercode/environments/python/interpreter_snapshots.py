"""Snapshots of Python episodes: a fork of the interpreter that waits, and a copy of the files.

The fork waits in the sandbox of its episode. When the snapshot is restored and no environment uses
that sandbox any more, the sandbox gets the files of the snapshot and the fork forks again. Another
sandbox gets the files too, and a copy of the fork with its memory. Either way the same objects are
there. If no process can be moved, because the processor is not x86-64, the recorded actions run
again instead.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, TypeGuard, cast

from intercode.core.errors import EnvironmentStateError, SandboxError
from intercode.environments.base.contract import Workspace
from intercode.environments.base.episode import Capture
from intercode.environments.base.sandboxed_env import FileSnapshots, SandboxedEnv
from intercode.environments.base.snapshots.storage import SavedWorkspace
from intercode.environments.base.workspaces import (
    SandboxWorkspace,
    close_session,
    closed_on_error,
)
from intercode.environments.python.profiles import PythonSettings
from intercode.sessions.python.interpreter import (
    Interpreter,
    InterpreterEndedError,
    InterpreterRefusedError,
)
from intercode.sessions.python.migration import MigrationError, migrate_fork
from intercode.sessions.python.session import PythonSession, PythonState
from intercode_sandbox import BaseSnapshot, SandboxSpec

_FORK_SECONDS = 30.0  # for an interpreter to fork


class SharedSandbox:
    """A workspace with its users: an environment that plays in it, and forks that wait.

    It is closed when the last user has left.
    """

    def __init__(self, workspace: SandboxWorkspace) -> None:
        self.workspace = workspace
        self._in_use = True
        self._forks: dict[Interpreter, None] = {}
        self._lock = threading.Lock()

    @property
    def fork_pids(self) -> list[int]:
        """The process numbers of the waiting forks."""
        return [fork.pid for fork in self._forks]

    def add_fork(self, fork: Interpreter) -> None:
        """Add a waiting fork."""
        with self._lock:
            self._forks[fork] = None

    def remove_fork(self, fork: Interpreter) -> None:
        """Close a fork that is no longer needed."""
        with self._lock:
            self._forks.pop(fork, None)
            unused = not self._in_use and not self._forks
        fork.close()
        if unused:
            self.workspace.close()

    def acquire(self) -> bool:
        """Return whether no environment uses the sandbox; if so, the caller uses it from now on."""
        with self._lock:
            was_free, self._in_use = not self._in_use, True
            return was_free

    def release(self) -> None:
        """Note that the environment that used the sandbox has left it."""
        with self._lock:
            self._in_use = False
            unused = not self._forks
        close_session(self.workspace.session)
        if unused:
            self.workspace.close()


@dataclass(frozen=True)
class InterpreterSnapshot:
    """The content of a snapshot: files, actions, the fork, and the sandbox in which it waits."""

    spec: SandboxSpec
    files: BaseSnapshot
    state: PythonState
    shared: SharedSandbox
    fork: Interpreter

    def release(self) -> None:
        """Free the snapshot. May be called again."""
        self.shared.remove_fork(self.fork)
        self.files.close()


def take_snapshot(
    spec: SandboxSpec, shared: SharedSandbox
) -> tuple[InterpreterSnapshot, tuple[str, ...]]:
    """Take a snapshot of a running episode. Return it with the processes that it does not hold.

    Raises EnvironmentStateError with the reason for an interpreter that cannot be forked now.
    """
    session, sandbox = shared.workspace.session, shared.workspace.sandbox
    assert isinstance(session, PythonSession)
    own_pids = {*session.own_pids, *shared.fork_pids}
    omitted = tuple(
        name for name in sandbox.processes() if int(name.split("(")[-1][:-1]) not in own_pids
    )
    try:
        fork = session.interpreter().fork("snapshot", _FORK_SECONDS)
    except (InterpreterRefusedError, InterpreterEndedError) as e:
        why = str(e) or "it does not answer"
        raise EnvironmentStateError(f"no snapshot of the interpreter is possible: {why}") from e
    shared.add_fork(fork)
    session.protected_pids = shared.fork_pids
    try:
        return InterpreterSnapshot(spec, sandbox.snapshot(), session.state(), shared, fork), omitted
    except BaseException:
        shared.remove_fork(fork)
        raise


def resume_in_same_sandbox(snapshot: InterpreterSnapshot, program: str) -> SharedSandbox | None:
    """Restore a snapshot in its own sandbox: its files, and a live interpreter.

    Returns None if an environment uses the sandbox, or the fork is gone.
    """
    shared = snapshot.shared
    if not shared.acquire():
        return None
    sandbox, interpreter = shared.workspace.sandbox, None
    try:
        sandbox.kill_since(0, keep=shared.fork_pids)
        sandbox.restore(snapshot.files)
        interpreter = snapshot.fork.fork("any", _FORK_SECONDS)
        session = PythonSession(sandbox, "/", program, snapshot.state, interpreter)
        session.protected_pids = shared.fork_pids
        workspace = SandboxWorkspace(sandbox, session)
    except (SandboxError, InterpreterEndedError, InterpreterRefusedError):
        if interpreter is not None:
            interpreter.close()
        shared.release()
        return None
    shared.workspace = workspace
    return shared


def resume_in_new_sandbox(
    workspace: SandboxWorkspace, snapshot: InterpreterSnapshot, program: str, timeout: float
) -> SandboxWorkspace:
    """Restore a snapshot in another workspace and return that.

    Actions that have to run again get ``timeout`` seconds each. Raises EnvironmentStateError with
    the reason for an interpreter that cannot be moved.
    """
    session, sandbox = workspace.session, workspace.sandbox
    assert isinstance(session, PythonSession)
    try:
        sandbox.restore(snapshot.files)
        interpreter = migrate_fork(snapshot.fork, sandbox, program)
    except MigrationError:
        rerun_actions(workspace, snapshot.state, snapshot.files, timeout)
        return workspace
    except InterpreterRefusedError as e:
        raise EnvironmentStateError(f"the interpreter cannot be moved: {e}") from e
    session.close()
    return SandboxWorkspace(
        sandbox, PythonSession(sandbox, "/", program, snapshot.state, interpreter)
    )


def rerun_actions(
    workspace: SandboxWorkspace, state: PythonState, files: BaseSnapshot, timeout: float
) -> None:
    """Restore a state in a fresh workspace: run its actions again, each for at most ``timeout``
    seconds, and replace the files they leave by ``files``."""
    assert isinstance(workspace.session, PythonSession)
    workspace.session.rerun(state, timeout)
    workspace.sandbox.restore(files)
    workspace.session.change_directory(state.cwd)


class InterpreterSnapshots(FileSnapshots):
    """Saves the live interpreter. An unused workspace is used for the next episode."""

    env: SandboxedEnv
    _shared_sandbox: SharedSandbox | None = None  # set once a snapshot was taken or restored
    _unused: tuple[Any, SandboxWorkspace] | None = None
    _key: Any = None  # what the workspace of the episode is

    def unused_or_new_workspace(self) -> SandboxWorkspace:
        """Return the workspace of an earlier episode that did not use it, or a new one."""
        self._key = self.env.context.request.key, self.env.task.initial_files
        unused, self._unused = self._unused, None
        if unused is not None:
            key, workspace = unused
            if key == self._key:
                return workspace
            workspace.close()
        return self.env.context.open_workspace()

    def close_workspace(self, workspace: Workspace) -> None:
        shared, self._shared_sandbox = self._shared_sandbox, None
        if shared is not None:
            shared.release()
        elif self._unused is None and _is_unused(workspace):
            self._unused = self._key, workspace
        else:
            workspace.close()

    def close(self) -> None:
        """Close the unused workspace."""
        unused, self._unused = self._unused, None
        if unused is not None:
            unused[1].close()

    def capture(self) -> Capture:
        context = self.env.context
        self._shared_sandbox = self._shared_sandbox or SharedSandbox(context.workspace)
        snapshot, omitted = take_snapshot(context.spec, self._shared_sandbox)
        return snapshot, omitted, snapshot.release

    def restore(self, captured: Any, consume: bool = False) -> SandboxWorkspace:  # noqa: ARG002
        saved = self.saved_workspace(captured)
        program, timeout = cast(PythonSettings, self.env.settings).interpreter, self.env.timeout
        if isinstance(saved, SavedWorkspace):
            with closed_on_error(self.env.open_workspace()) as workspace:
                assert isinstance(saved.state, PythonState)
                rerun_actions(workspace, saved.state, saved.files, timeout)
            return workspace
        self._shared_sandbox = resume_in_same_sandbox(saved, program)
        if self._shared_sandbox is not None:
            return self._shared_sandbox.workspace
        with closed_on_error(self.env.open_workspace()) as workspace:
            return resume_in_new_sandbox(workspace, saved, program, timeout)


def _is_unused(workspace: Workspace) -> TypeGuard[SandboxWorkspace]:
    return (
        isinstance(workspace, SandboxWorkspace)
        and isinstance(workspace.session, PythonSession)
        and workspace.session.is_unused
    )
