"""Opens workspaces, the sandboxes and sessions of episodes: new, prewarmed or recycled.

A prewarmed workspace is created by a background thread before an episode asks for it. A recycled
sandbox is reset in the background after an episode, and then serves an episode with the same
specification. That costs about a fifth of the processor time of a new sandbox. A recycled sandbox
keeps its user, process and network namespaces. Its processes have ended, and its files, shared
memory and process numbers start as in a new sandbox. A sandbox that used the network or exceeded a
limit is not recycled. Containers recycle by themselves (see sandbox/supervisor/recycling.py).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar
from weakref import WeakSet

from intercode.core.errors import InfrastructureError, SandboxLostError
from intercode.core.types import ExecResult
from intercode.environments.base.contract import Workspace
from intercode.environments.base.hashes import state_hash
from intercode.sessions.base import Session
from intercode_sandbox import SandboxSpec, open_sandbox, tier_of
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.recycler import Recycler, per_process
from intercode_sandbox.tiers.tier_table import tier_named

_WORKERS = 2
_YIELD_SECONDS = 0.0005
_MAX_WAITING = 64  # prewarmed workspaces in one process, whatever the number of environments

_RecycleKey = tuple[SandboxSpec, str]
C = TypeVar("C", bound="Workspace | BaseSandbox")


@dataclass(frozen=True, slots=True)
class SandboxWorkspace:
    """A sandbox with a session in it. ``recycle``: closing it recycles the sandbox."""

    sandbox: BaseSandbox
    session: Session
    recycle: bool = False

    @property
    def cwd(self) -> str:
        return self.session.cwd

    def run(self, action: str, timeout: float) -> ExecResult:
        return self.session.run(action, timeout)

    def changed_paths(self) -> list[str]:
        return self.sandbox.changed_paths()

    def state_hash(self) -> str:
        return state_hash(self.sandbox.changes(), self.session.cwd, self.session.state_text())

    def abort(self) -> None:
        self.sandbox.close()

    def close(self) -> None:
        """Close the session and close or recycle the sandbox."""
        if self.recycle:
            release_sandbox(self.sandbox, self.session)
        else:
            _end_with(self.session, self.sandbox.close)


@contextmanager
def closed_on_error(resource: C) -> Iterator[C]:
    """Close a workspace or a sandbox if the block that prepares it raises."""
    try:
        yield resource
    except BaseException:
        resource.close()
        raise


# -------------------------------------------------------------------- recycling


def acquire_sandbox(spec: SandboxSpec, backend: str, recycle: bool) -> BaseSandbox:
    """Return a recycled sandbox with this specification if ``recycle`` and there is one, else a
    new one. Raises as ``open_sandbox``; no code of an agent can have caused it."""
    if recycle:
        recycled = _process_recycler().take(_recycle_key(spec, tier_of(backend)))
        if recycled is not None:
            return recycled
    try:
        return open_sandbox(spec, backend)
    except InfrastructureError as e:
        e.machine_failed = True
        raise


def release_sandbox(sandbox: BaseSandbox, session: Session) -> None:
    """Recycle a sandbox that is no longer used, or close it if it cannot be recycled."""

    def reset(sandbox: BaseSandbox) -> None:
        recycle_with_session(sandbox, session)

    _process_recycler().recycle(_recycle_key(sandbox.spec, sandbox.tier), sandbox, reset)


def recycle_with_session(sandbox: BaseSandbox, session: Session) -> None:
    """Close the session of a sandbox, and recycle the sandbox, which ends its processes."""
    _end_with(session, sandbox.recycle)


def _end_with(session: Session, end_sandbox: Callable[[], object]) -> None:
    """Close a session, and end its sandbox or what runs in it: first the session, if it says
    nothing else (``Session.close``)."""
    ends: list[Callable[[], object]] = [partial(close_session, session), end_sandbox]
    closing = next((c for c in type(session).__mro__ if "close" in vars(c)), object)
    if vars(closing).get("ends_with_sandbox", False):
        ends.reverse()
    try:
        ends[0]()
    except BaseException:  # what ended it first is the cause, such as Ctrl-C
        with suppress(Exception):
            ends[1]()
        raise
    ends[1]()


def close_session(session: Session) -> None:
    """Close a session whose sandbox is open, or gone with everything in it."""
    with suppress(SandboxLostError):
        session.close()


def _make_recycler() -> Recycler[BaseSandbox]:
    return Recycler(BaseSandbox.close)


_process_recycler = per_process(_make_recycler)


def _recycle_key(spec: SandboxSpec, tier: str) -> _RecycleKey:
    """Return what two sandboxes must have in common to replace each other.

    The tiers of namespaces differ only in limits, which the specification holds.
    """
    return spec, tier_named(tier).backend


@dataclass(frozen=True, slots=True)
class WorkspaceRequest:
    """What a workspace has to be. ``key``: two requests with an equal one can have the same
    workspace. ``open_session``: opens the session in a sandbox with this specification."""

    key: Any
    spec: SandboxSpec
    open_session: Callable[[BaseSandbox], Session]


class Workspaces:
    """Opens the workspaces of one environment: prewarmed, recycled or new ones.

    ``recycle``: sandboxes of agents are recycled, unless ``deterministic``. Where they are new for
    each agent, those of golds are recycled, as they cost less, and no agent gets into them.
    """

    def __init__(self, backend: str, recycle: bool, deterministic: bool) -> None:
        self.backend, self._recycle, self._deterministic = backend, recycle, deterministic
        self.prewarmer, self.gold_prewarmer = Prewarmer(), Prewarmer(expects_third=True)

    @cached_property
    def tier(self) -> str:
        """The isolation tier of the sandboxes."""
        return tier_of(self.backend)

    @property
    def recycles(self) -> bool:
        """Whether sandboxes are recycled. Those that take long to open always are, unless
        deterministic."""
        return not self._deterministic if tier_named(self.tier).recycles else self._recycle

    def open(self, request: WorkspaceRequest) -> SandboxWorkspace:
        """Open a pristine workspace. The caller closes it."""
        return self.prewarmer.acquire(request.key, partial(self._create, request))

    @contextmanager
    def open_for_gold(self, request: WorkspaceRequest) -> Iterator[SandboxWorkspace]:
        """Open a pristine workspace for code of the dataset only."""
        prewarmer, key = self.gold_prewarmer, request.key
        workspace = prewarmer.take_prewarmed(key) or self.open(request)
        with closed_on_error(workspace):
            yield workspace
        own_layers = tier_named(self.tier).own_layers
        recycles = own_layers and not (self._deterministic or self._recycle)
        if recycles and prewarmer.expects_again(key):
            recycle = partial(self._recycle_for, request, workspace)
            if prewarmer.prepare(key, recycle, workspace.close):
                return
        workspace.close()

    def close(self) -> None:
        """Close the prewarmed workspaces. May be called again."""
        self.prewarmer.close()
        self.gold_prewarmer.close()

    def _create(self, request: WorkspaceRequest) -> SandboxWorkspace:
        with closed_on_error(acquire_sandbox(request.spec, self.backend, self._recycle)) as sandbox:
            return SandboxWorkspace(sandbox, request.open_session(sandbox), self._recycle)

    def _recycle_for(
        self, request: WorkspaceRequest, workspace: SandboxWorkspace
    ) -> SandboxWorkspace:
        with closed_on_error(workspace):
            recycle_with_session(workspace.sandbox, workspace.session)
            return SandboxWorkspace(workspace.sandbox, request.open_session(workspace.sandbox))


# ------------------------------------------------------------------- prewarming
class _PrewarmPool:
    """The threads and prewarmed workspaces of one process."""

    def __init__(self) -> None:
        self.executor = ThreadPoolExecutor(_WORKERS, thread_name_prefix="intercode-prewarm")
        # Those that hold a workspace. Weak, so that dropping an environment without ``close`` also
        # closes its workspace.
        self.waiting: WeakSet[Prewarmer] = WeakSet()
        self.lock = threading.Lock()  # protects ``waiting`` and the workspaces
        self._foreground = 0  # calls of ``create_now`` in progress
        self._no_foreground = threading.Condition()

    def create_now(self, make: Callable[[], SandboxWorkspace]) -> SandboxWorkspace:
        """Create a workspace that the caller waits for."""
        with self._no_foreground:
            self._foreground += 1
        try:
            return make()
        finally:
            with self._no_foreground:
                self._foreground -= 1
                self._no_foreground.notify_all()

    def create_when_idle(self, make: Callable[[], SandboxWorkspace]) -> SandboxWorkspace:
        """Create a workspace when no caller waits for one.

        Yields first, as the interpreter lock would otherwise delay the thread that prepared this.
        """
        time.sleep(_YIELD_SECONDS)
        with self._no_foreground:
            self._no_foreground.wait_for(lambda: self._foreground == 0)
        return make()


_process_pool = per_process(_PrewarmPool)


class Prewarmer:
    """Prewarms one workspace at a time. Used by one thread.

    It prewarms another workspace for the same key only if it expects that this key comes again: an
    episode may take a second workspace, for the gold, and the next episode one for another key. It
    expects what came the last time after a workspace whose key was, or was not, that of the one
    before. ``expects_third``: whether it expects a third workspace at first, which a single episode
    does not take.

    A process holds at most 64 prewarmed workspaces, and then prewarms no other. If another one
    replaced the oldest, environments that take turns would never find theirs.
    """

    def __init__(self, expects_third: bool = False) -> None:
        self._last_key: Any = None
        self._repeated = False  # whether the last key was that of the one before
        self._repeats = {False: True, True: expects_third}
        self._key: Any = None
        self._prewarmed: Future[SandboxWorkspace] | None = None

    def acquire(self, key: Any, make: Callable[[], SandboxWorkspace]) -> SandboxWorkspace:
        """Take a workspace, and prewarm the next one if it is likely to be needed."""
        workspace = self.take_prewarmed(key) or _process_pool().create_now(make)
        if self.expects_again(key):
            self.prepare(key, make)
        return workspace

    def expects_again(self, key: Any) -> bool:
        """Note the key of a workspace, and return whether the next one is likely to have it too."""
        repeated = key == self._last_key
        if self._last_key is not None:
            self._repeats[self._repeated] = repeated
        self._last_key, self._repeated = key, repeated
        return self._repeats[repeated]

    def take_prewarmed(self, key: Any) -> SandboxWorkspace | None:
        """Return the prewarmed workspace if it was made for an equal ``key``, else None."""
        prewarmed = self._release()
        if prewarmed is None or prewarmed.cancel():  # absent, or not begun
            return None
        if key != self._key:
            _discard(prewarmed)
            return None
        try:
            workspace = prewarmed.result()
        except Exception:  # an attempt in the foreground raises the error to the caller
            return None
        if not workspace.sandbox.is_lost:
            return workspace
        workspace.close()
        return None

    def prepare(
        self, key: Any, make: Callable[[], SandboxWorkspace], discard: Callable[[], object] = int
    ) -> bool:
        """Start to prewarm a workspace, unless there is one, or the process holds too many.

        Returns whether it was started. ``discard`` is called if it is cancelled before it begins.
        """
        pool = _process_pool()
        with pool.lock:
            if self._prewarmed is not None or len(pool.waiting) >= _MAX_WAITING:
                return False
            self._key, self._prewarmed = key, pool.executor.submit(pool.create_when_idle, make)
            pool.waiting.add(self)
        self._prewarmed.add_done_callback(lambda done: discard() if done.cancelled() else None)
        return True

    def close(self) -> None:
        """Close the prewarmed workspace. May be called again."""
        prewarmed = self._release()
        if prewarmed is not None:
            _discard(prewarmed)

    def _release(self) -> Future[SandboxWorkspace] | None:
        pool = _process_pool()
        with pool.lock:
            prewarmed, self._prewarmed = self._prewarmed, None
            pool.waiting.discard(self)
        return prewarmed


def _discard(prewarmed: Future[SandboxWorkspace]) -> None:
    def close(done: Future[SandboxWorkspace]) -> None:
        if not done.cancelled() and done.exception() is None:
            done.result().close()

    if not prewarmed.cancel():
        prewarmed.add_done_callback(close)
