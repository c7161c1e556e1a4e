"""Environments whose code runs in a sandbox: images, places, snapshots."""

from __future__ import annotations

import platform
from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

from intercode import images
from intercode.builders.layers import task_layer
from intercode.envs.base import InterCodeEnv
from intercode.envs.spares import Place, Spare
from intercode.images.recipe import pinned
from intercode.sandboxes import SandboxSpec, open_sandbox, tier_of
from intercode.sandboxes.namespace.sandbox import NamespaceSandbox
from intercode.sessions.base import Session
from intercode.sessions.shell_state import SessionState
from intercode.types import ExecResult, Image, Layer, Task

_ONCE = 2
"""Places that one episode takes: the agent's and the gold's. An environment that takes more is used
again, and gets the next one made ready as well."""


class SandboxedEnv(InterCodeEnv):
    """Opens a place (a box and its session) per episode, the next one ahead of need."""

    _place: Place | None = None
    _spec: SandboxSpec
    _opened = 0

    @cached_property
    def image(self) -> Image:
        """The root file system, unpacked when it is first needed."""
        return images.resolve(self.image_name)

    @cached_property
    def _spare(self) -> Spare:
        return Spare()

    def facts(self) -> dict[str, Any]:
        return {
            **super().facts(),
            "image": self.image.name,
            "image_digest": self.image.digest,
            "comparable": self.dataset.comparable and pinned(self.image),
            "arch": platform.machine(),
            "tier": tier_of(self.sandbox_kind),
        }

    @property
    def working_directory(self) -> str:
        return self._place.session.cwd if self._place else ""

    # ------------------------------------------------------ for the subclass
    @abstractmethod
    def _make_spec(self, layers: tuple[Layer, ...]) -> SandboxSpec:
        """What every box of an episode is made of."""

    @abstractmethod
    def _open_session(
        self, box: NamespaceSandbox, task: Task, state: SessionState | None
    ) -> Session:
        """The session in a box; from a state if one is given."""

    # ------------------------------------------------------------- the episode
    def _open_episode(self, task: Task) -> None:
        self._spec = self._make_spec(tuple(task_layer(s, self.image) for s in task.files))
        self._place = self._open_place()

    def _open_place(self) -> Place:
        """A fresh box with its session; the next one is then made ready in the background."""
        spec, task = self._spec, self.task
        key = (spec, task.cwd, task.setup)
        place = self._spare.take(key, lambda: self._make_place(spec, task))
        self._opened += 1
        if self._opened % 2 or self._opened > _ONCE:
            self._spare.prepare(key, lambda: self._make_place(spec, task))
        return place

    def _make_place(self, spec: SandboxSpec, task: Task) -> Place:
        box = open_sandbox(spec, self.sandbox_kind)
        assert isinstance(box, NamespaceSandbox)
        try:
            return Place(box, self._open_session(box, task, None))
        except BaseException:
            box.close()
            raise

    def _close_episode(self) -> None:
        if self._place is not None:
            self._place.close()
        self._place = None

    def close(self) -> None:
        super().close()
        self._spare.close()

    def _is_open(self) -> bool:
        return self._place is not None

    def _execute(self, action: str) -> ExecResult:
        return self._here.session.run(action, self.timeout)

    def _changes(self) -> list[str]:
        return list(self._here.box.changes(digests=False))

    @property
    def _here(self) -> Place:
        assert self._place is not None
        return self._place

    # --------------------------------------------------------------- snapshots
    def _hold(self) -> tuple[Any, tuple[str, ...], Callable[[], None]]:
        state = self._here.session.state()
        box = self._here.box.clone()
        return (self._spec, box, state), self._here.box.processes(), box.close

    def _resume(self, held: Any) -> None:
        self._spec, box, state = held
        twin = box.clone()
        self._place = Place(twin, self._open_session(twin, self.task, state))
