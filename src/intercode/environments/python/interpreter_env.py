"""An environment of live interpreters: how its episodes end, are kept, and are gone back to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.environments.base.snapshots.files import SnapshotFiles
from intercode.environments.base.snapshots.storage import StoredSnapshot
from intercode.environments.base.workspaces import Workspace
from intercode.environments.python.interpreter_snapshots import (
    SharedSandbox,
    rerun_actions,
    resume_in_new_sandbox,
    resume_in_place,
    take_snapshot,
)
from intercode.sessions.python.session import PythonSession
from intercode.sessions.python.state import PythonState


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
