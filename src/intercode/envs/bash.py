"""Bash: do what a sentence asks for, in a shell of your own."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

from intercode import images
from intercode.builders.layers import task_layer
from intercode.envs.base import InterCodeEnv
from intercode.envs.bash_profiles import BashProfile, Original, Standard
from intercode.errors import GoldError
from intercode.images.recipe import pinned
from intercode.sandboxes import open_sandbox
from intercode.sandboxes.namespace.sandbox import NamespaceSandbox
from intercode.sessions.base import Session
from intercode.types import ExecResult, Image, State, Task


class BashEnv(InterCodeEnv):
    """Answer a request in Bash; the reward looks at what was printed and at the file system.

    In the ``standard`` profile one shell lives as long as the episode; in ``original`` every action
    is a shell of its own and git sees the changes, as in the authors' code.
    """

    name: ClassVar[str] = "bash"
    _sandbox: NamespaceSandbox | None = None
    _session: Session | None = None

    @cached_property
    def _way(self) -> BashProfile:
        return Original() if self.profile == "original" else Standard()

    @cached_property
    def image(self) -> Image:
        """The root file system, unpacked when it is first needed."""
        return images.resolve(self.image_name)

    @property
    def working_directory(self) -> str:
        return self._session.cwd if self._session else ""

    def facts(self) -> dict[str, Any]:
        return {
            **super().facts(),
            "image": self.image.name,
            "image_digest": self.image.digest,
            "comparable": self.dataset.comparable and pinned(self.image),
            "arch": platform.machine(),
            "tier": NamespaceSandbox.tier,
        }

    def _open_box(self) -> NamespaceSandbox:
        sandbox = open_sandbox(self._spec, self.sandbox_kind)
        assert isinstance(sandbox, NamespaceSandbox)
        return sandbox

    def _open_episode(self, task: Task) -> None:
        layers = tuple(task_layer(spec, self.image) for spec in task.files)
        self._spec = self._way.spec(self.image, layers, self.network)
        self._sandbox = self._open_box()
        self._session = self._way.open_session(self._sandbox, task, None)

    def _close_episode(self) -> None:
        self._way.close()
        if self._session is not None:
            self._session.close()
        if self._sandbox is not None:
            self._sandbox.close()
        self._sandbox = self._session = None

    def _hold(self) -> tuple[Any, tuple[str, ...], Callable[[], None]]:
        assert self._sandbox is not None and self._session is not None
        state = self._session.state()
        box = self._sandbox.clone()
        return (self._spec, box, state), self._sandbox.processes(), box.close

    def _resume(self, held: Any) -> None:
        self._spec, box, state = held
        self._sandbox = box.clone()
        self._session = self._way.open_session(self._sandbox, self.task, state)

    def _is_open(self) -> bool:
        return self._session is not None

    def _execute(self, action: str) -> ExecResult:
        assert self._session is not None
        return self._session.run(action, self.timeout)

    def _changes(self) -> list[str]:
        assert self._sandbox is not None
        return list(self._sandbox.changes(digests=False))

    def _agent_state(self, last: ExecResult | None, answer: str | None) -> State:
        assert self._sandbox is not None and self._session is not None
        state = self._way.agent_state(self._sandbox, self._session, last, self.task)
        return replace(state, answer=answer)

    def _gold_states(self, task: Task) -> list[State]:
        if not task.golds:
            raise GoldError(f"{task.id} has no gold: nothing to score against")
        return self._way.gold_states(task, self._open_box)
