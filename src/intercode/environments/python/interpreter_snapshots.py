"""Snapshots of Python episodes: the interpreter itself, as a fork that waits, and the files.

The fork waits in the box of its episode. When an environment goes back to the snapshot and nobody
plays in that box any more, the box is given the files of then and the fork forks again. Another box
is given the files too, and a copy of the fork, memory and all: the very objects go on in any case.
Where no process can be moved (no compiled keeper, another processor than x86-64) the recorded
actions are run again instead.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from intercode.core.errors import EnvironmentStateError, SandboxError
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.environments.base.snapshots.files import CopiedFiles, SnapshotFiles
from intercode.environments.base.snapshots.storage import StoredSnapshot
from intercode.environments.base.workspaces import Workspace
from intercode.sandbox import SandboxSpec
from intercode.sandbox.supervisor.client import SupervisedSandbox
from intercode.sessions.python.interpreter import Interpreter, InterpreterEndedError, RefusedError
from intercode.sessions.python.migration import MigrationError, migrate_fork
from intercode.sessions.python.session import PythonSession, PythonState

_FORK_SECONDS = 30.0  # for an interpreter to fork


class FileSource(Protocol):
    """Files that a box can be given in place of its own."""

    def apply_to(self, box: SupervisedSandbox) -> None: ...


class SharedSandbox:
    """A place with those who need it: an environment that plays there, and forks that wait. It is
    closed when the last one has gone."""

    def __init__(self, place: Workspace) -> None:
        self.place = place
        self._in_use = True
        self._forks: dict[Interpreter, None] = {}
        self._lock = threading.Lock()

    @property
    def fork_pids(self) -> list[int]:
        """The process numbers of the forks that wait."""
        return [fork.pid for fork in self._forks]

    def add_fork(self, fork: Interpreter) -> None:
        """Have one more wait."""
        with self._lock:
            self._forks[fork] = None

    def remove_fork(self, fork: Interpreter) -> None:
        """That one is no longer needed."""
        with self._lock:
            self._forks.pop(fork, None)
            over = not self._in_use and not self._forks
        fork.close()
        if over:
            self.place.close()

    def acquire(self) -> bool:
        """Whether nobody plays here: then it is the caller who does from now on."""
        with self._lock:
            free, self._in_use = not self._in_use, True
            return free

    def release(self) -> None:
        """The environment that played here has gone on."""
        with self._lock:
            self._in_use = False
            over = not self._forks
        self.place.session.close()
        if over:
            self.place.close()


@dataclass(frozen=True)
class InterpreterSnapshot:
    """What a snapshot keeps: where the box came from, files, actions, and the fork."""

    spec: SandboxSpec
    files: CopiedFiles
    state: PythonState
    shared: SharedSandbox
    fork: Interpreter

    def release(self) -> None:
        """Free it. May be called again."""
        self.shared.remove_fork(self.fork)
        self.files.close()


def take_snapshot(
    spec: SandboxSpec, shared: SharedSandbox
) -> tuple[InterpreterSnapshot, tuple[str, ...]]:
    """Keep this moment of an episode, and tell which processes are not in it. Raises
    EnvironmentStateError for an interpreter that cannot be forked now, with the reason."""
    session, box = shared.place.session, shared.place.sandbox
    assert isinstance(session, PythonSession)
    own = {*session.own_pids, *shared.fork_pids}
    left = tuple(name for name in box.processes() if int(name.split("(")[-1][:-1]) not in own)
    try:
        fork = session.interpreter().fork("snapshot", _FORK_SECONDS)
    except (RefusedError, InterpreterEndedError) as e:
        why = str(e) or "it does not answer"
        raise EnvironmentStateError(f"the interpreter cannot be kept as it is: {why}") from e
    shared.add_fork(fork)
    session.protected_pids = shared.fork_pids
    try:
        return InterpreterSnapshot(spec, CopiedFiles(box), session.state(), shared, fork), left
    except BaseException:
        shared.remove_fork(fork)
        raise


def resume_in_place(kept: InterpreterSnapshot, program: str) -> SharedSandbox | None:
    """The box of a snapshot with its files as they were and a live interpreter; None where somebody
    plays in it, or the fork is gone."""
    shared = kept.shared
    if not shared.acquire():
        return None
    box, live = shared.place.sandbox, None
    try:
        box.kill_since(0, keep=shared.fork_pids)
        kept.files.apply_to(box)
        live = kept.fork.fork("any", _FORK_SECONDS)
        session = PythonSession(box, "/", program, kept.state, live)
        session.protected_pids = shared.fork_pids
        place = Workspace(box, session)
    except (SandboxError, InterpreterEndedError, RefusedError):
        if live is not None:
            live.close()
        shared.release()
        return None
    shared.place = place
    return shared


def resume_in_new_sandbox(
    place: Workspace, kept: InterpreterSnapshot, program: str, timeout: float
) -> Workspace:
    """A place of its own that goes on from a snapshot; what was to be run again has so many seconds
    an action. Raises EnvironmentStateError for an interpreter that cannot be moved, with the
    reason."""
    session, box = place.session, place.sandbox
    assert isinstance(session, PythonSession)
    try:
        kept.files.apply_to(box)
        live = migrate_fork(kept.fork, box, program)
    except MigrationError:
        rerun_actions(place, kept.state, kept.files, timeout)
        return place
    except RefusedError as e:
        raise EnvironmentStateError(f"the interpreter cannot be moved as it is: {e}") from e
    session.close()
    return Workspace(box, PythonSession(box, "/", program, kept.state, live))


def rerun_actions(place: Workspace, state: PythonState, files: FileSource, timeout: float) -> None:
    """Come to a state in a fresh place by running its actions again, each for so many seconds, and
    putting the files of then in place of theirs."""
    assert isinstance(place.session, PythonSession)
    place.session.rerun(state, timeout)
    files.apply_to(place.sandbox)
    place.session.change_directory(state.cwd)


class LiveInterpreterEnv(SandboxedEnv):
    """See python_live.py for what a snapshot keeps. A place in which nothing was done serves the
    next episode. ``interpreter`` is the program in the image."""

    interpreter: str
    _shared_sandbox: SharedSandbox | None = None  # where a snapshot was taken, or gone on from
    _unused: tuple[Any, Workspace] | None = None

    def _acquire_workspace(self) -> Workspace:
        unused, self._unused = self._unused, None
        if unused is not None:
            key, place = unused
            if key == self._prewarm_key:
                return place
            place.close()
        return super()._acquire_workspace()

    def _open_episode(self, task: Any) -> None:
        super()._open_episode(task)
        self._begun_with = self._prewarm_key

    def _close_episode(self) -> None:
        place, shared = self._workspace, self._shared_sandbox
        self._shared_sandbox = None
        if shared is not None:
            self._workspace = None
            shared.release()
        elif place is not None and self._unused is None and _is_unused(place):
            self._workspace, self._unused = None, (self._begun_with, place)
        else:
            super()._close_episode()

    def close(self) -> None:
        super().close()
        unused, self._unused = self._unused, None
        if unused is not None:
            unused[1].close()

    def _capture(self) -> tuple[Any, tuple[str, ...], Callable[[], None]]:
        self._shared_sandbox = self._shared_sandbox or SharedSandbox(self._current_workspace)
        kept, left = take_snapshot(self._spec, self._shared_sandbox)
        return kept, left, kept.release

    def _captured_parts(self, held: Any) -> tuple[SnapshotFiles, Any]:
        return held.files, held.state

    def _restore_captured(self, captured: Any, consume: bool = False) -> None:  # noqa: ARG002
        if isinstance(captured, StoredSnapshot):
            self._spec = self._spec_for(self.task)
            place = self._acquire_workspace()
            try:
                assert isinstance(captured.state, PythonState)
                rerun_actions(
                    place,
                    captured.state,
                    captured.files(self._spec, self.sandbox_kind),
                    self.timeout,
                )
                self._workspace = place
            except BaseException:
                place.close()
                raise
            return
        self._spec, self._shared_sandbox = (
            captured.spec,
            resume_in_place(captured, self.interpreter),
        )
        if self._shared_sandbox is not None:
            self._workspace = self._shared_sandbox.place
            return
        place = self._acquire_workspace()
        try:
            self._workspace = resume_in_new_sandbox(place, captured, self.interpreter, self.timeout)
        except BaseException:
            place.close()
            raise


def _is_unused(place: Workspace) -> bool:
    return isinstance(place.session, PythonSession) and place.session.is_unused
