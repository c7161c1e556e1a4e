"""An environment of live interpreters: how its episodes end, are kept, and are gone back to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.environments.base.snapshots.files import KeptFiles
from intercode.environments.base.snapshots.storage import Stored
from intercode.environments.base.workspaces import Place
from intercode.environments.python.interpreter_snapshots import (
    SharedBox,
    held,
    moved_to,
    run_again,
    woken,
)
from intercode.sessions.python.session import PythonSession
from intercode.sessions.python.state import PythonState


class LiveEnv(SandboxedEnv):
    """See python_live.py for what a snapshot keeps. A place in which nothing was done serves the
    next episode. ``interpreter`` is the program in the image."""

    interpreter: str
    _shared: SharedBox | None = None  # where a snapshot was taken, or gone on from
    _unused: tuple[Any, Place] | None = None

    def _open_place(self) -> Place:
        unused, self._unused = self._unused, None
        if unused is not None:
            key, place = unused
            if key == self._key:
                return place
            place.close()
        return super()._open_place()

    def _open_episode(self, task: Any) -> None:
        super()._open_episode(task)
        self._begun_with = self._key

    def _close_episode(self) -> None:
        place, shared = self._place, self._shared
        self._shared = None
        if shared is not None:
            self._place = None
            shared.leave()
        elif place is not None and self._unused is None and _is_untouched(place):
            self._place, self._unused = None, (self._begun_with, place)
        else:
            super()._close_episode()

    def close(self) -> None:
        super().close()
        unused, self._unused = self._unused, None
        if unused is not None:
            unused[1].close()

    def _hold(self) -> tuple[Any, tuple[str, ...], Callable[[], None]]:
        self._shared = self._shared or SharedBox(self._here)
        kept, left = held(self._spec, self._shared)
        return kept, left, kept.release

    def _kept(self, held: Any) -> tuple[KeptFiles, Any]:
        return held.files, held.state

    def _resume(self, held: Any, last: bool = False) -> None:  # noqa: ARG002
        if isinstance(held, Stored):
            self._spec = self._spec_of(self.task)
            place = self._open_place()
            try:
                assert isinstance(held.state, PythonState)
                run_again(
                    place, held.state, held.files(self._spec, self.sandbox_kind), self.timeout
                )
                self._place = place
            except BaseException:
                place.close()
                raise
            return
        self._spec, self._shared = held.spec, woken(held, self.interpreter)
        if self._shared is not None:
            self._place = self._shared.place
            return
        place = self._open_place()
        try:
            self._place = moved_to(place, held, self.interpreter, self.timeout)
        except BaseException:
            place.close()
            raise


def _is_untouched(place: Place) -> bool:
    return isinstance(place.session, PythonSession) and place.session.untouched
