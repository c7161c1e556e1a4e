"""Snapshots of Python episodes: the interpreter itself, as a fork that waits, and the files.

The fork waits in the box of its episode. When an environment goes back to the snapshot and nobody
plays in that box any more, the box is given the files of then and the fork forks again. Another box
is given the files too, and a copy of the fork, memory and all: the very objects go on in any case.
Where no process can be moved (no compiled keeper, another processor than x86-64) the recorded
actions are run again instead.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Protocol

from intercode.core.errors import EnvironmentStateError, SandboxError
from intercode.environments.base.snapshots.files import CopiedFiles
from intercode.environments.base.workspaces import Place
from intercode.sandbox import SandboxSpec
from intercode.sandbox.supervisor.client import KeptSandbox
from intercode.sessions.python.interpreter import Interpreter, InterpreterEndedError, RefusedError
from intercode.sessions.python.migration import CannotMoveError, moved
from intercode.sessions.python.session import PythonSession
from intercode.sessions.python.state import PythonState

_SECONDS = 30.0  # for an interpreter to fork


class LentFiles(Protocol):
    """Files that a box can be given in place of its own."""

    def lend(self, box: KeptSandbox) -> None: ...


class SharedBox:
    """A place with those who need it: an environment that plays there, and forks that wait. It is
    closed when the last one has gone."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._playing = True
        self._waiting: dict[Interpreter, None] = {}
        self._lock = threading.Lock()

    @property
    def pids(self) -> list[int]:
        """The process numbers of the forks that wait."""
        return [fork.pid for fork in self._waiting]

    def keep(self, fork: Interpreter) -> None:
        """Have one more wait."""
        with self._lock:
            self._waiting[fork] = None

    def drop(self, fork: Interpreter) -> None:
        """That one is no longer needed."""
        with self._lock:
            self._waiting.pop(fork, None)
            over = not self._playing and not self._waiting
        fork.close()
        if over:
            self.place.close()

    def claim(self) -> bool:
        """Whether nobody plays here: then it is the caller who does from now on."""
        with self._lock:
            free, self._playing = not self._playing, True
            return free

    def leave(self) -> None:
        """The environment that played here has gone on."""
        with self._lock:
            self._playing = False
            over = not self._waiting
        self.place.session.close()
        if over:
            self.place.close()


@dataclass(frozen=True)
class HeldPython:
    """What a snapshot keeps: where the box came from, files, actions, and the fork."""

    spec: SandboxSpec
    files: CopiedFiles
    state: PythonState
    shared: SharedBox
    fork: Interpreter

    def release(self) -> None:
        """Free it. May be called again."""
        self.shared.drop(self.fork)
        self.files.close()


def held(spec: SandboxSpec, shared: SharedBox) -> tuple[HeldPython, tuple[str, ...]]:
    """Keep this moment of an episode, and tell which processes are not in it. Raises
    EnvironmentStateError for an interpreter that cannot be forked now, with the reason."""
    session, box = shared.place.session, shared.place.box
    assert isinstance(session, PythonSession)
    own = {*session.own, *shared.pids}
    left = tuple(name for name in box.processes() if int(name.split("(")[-1][:-1]) not in own)
    try:
        fork = session.interpreter().fork("apart", _SECONDS)
    except (RefusedError, InterpreterEndedError) as e:
        why = str(e) or "it does not answer"
        raise EnvironmentStateError(f"the interpreter cannot be kept as it is: {why}") from e
    shared.keep(fork)
    session.kept = shared.pids
    try:
        return HeldPython(spec, CopiedFiles(box), session.state(), shared, fork), left
    except BaseException:
        shared.drop(fork)
        raise


def woken(kept: HeldPython, program: str) -> SharedBox | None:
    """The box of a snapshot with its files as they were and a live interpreter; None where somebody
    plays in it, or the fork is gone."""
    shared = kept.shared
    if not shared.claim():
        return None
    box, live = shared.place.box, None
    try:
        box.kill_since(0, keep=shared.pids)
        kept.files.lend(box)
        live = kept.fork.fork("any", _SECONDS)
        session = PythonSession(box, "/", program, kept.state, live)
        session.kept = shared.pids
        place = Place(box, session)
    except (SandboxError, InterpreterEndedError, RefusedError):
        if live is not None:
            live.close()
        shared.leave()
        return None
    shared.place = place
    return shared


def moved_to(place: Place, kept: HeldPython, program: str, seconds: float) -> Place:
    """A place of its own that goes on from a snapshot; what was to be run again has so many seconds
    an action. Raises EnvironmentStateError for an interpreter that cannot be moved, with the
    reason."""
    session, box = place.session, place.box
    assert isinstance(session, PythonSession)
    try:
        kept.files.lend(box)
        live = moved(kept.fork, box, program)
    except CannotMoveError:
        run_again(place, kept.state, kept.files, seconds)
        return place
    except RefusedError as e:
        raise EnvironmentStateError(f"the interpreter cannot be moved as it is: {e}") from e
    session.close()
    return Place(box, PythonSession(box, "/", program, kept.state, live))


def run_again(place: Place, state: PythonState, files: LentFiles, seconds: float) -> None:
    """Come to a state in a fresh place by running its actions again, each for so many seconds, and
    putting the files of then in place of theirs."""
    assert isinstance(place.session, PythonSession)
    place.session.rerun(state, seconds)
    files.lend(place.box)
    place.session.move(state.cwd)
