"""Bash: do what a sentence asks for, in a shell of your own."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import ClassVar

from intercode.envs.bash_profiles import BashProfile, Original, Standard
from intercode.envs.sandboxed import SandboxedEnv
from intercode.errors import GoldError
from intercode.sandboxes import SandboxSpec
from intercode.sandboxes.namespace.sandbox import NamespaceSandbox
from intercode.sessions.base import Session
from intercode.sessions.shell_state import SessionState
from intercode.types import ExecResult, Layer, State, Task


class BashEnv(SandboxedEnv):
    """Answer a request in Bash; the reward looks at what was printed and at the file system.

    In the ``standard`` profile one shell lives as long as the episode; in ``original`` every action
    is a shell of its own and git sees the changes, as in the authors' code.
    """

    name: ClassVar[str] = "bash"

    @cached_property
    def _way(self) -> BashProfile:
        return Original() if self.profile == "original" else Standard()

    def _make_spec(self, layers: tuple[Layer, ...]) -> SandboxSpec:
        return self._way.spec(self.image, layers, self.network)

    def _open_session(
        self, box: NamespaceSandbox, task: Task, state: SessionState | None
    ) -> Session:
        return self._way.open_session(box, task, state)

    def _close_episode(self) -> None:
        self._way.close()
        super()._close_episode()

    def _agent_state(self, last: ExecResult | None, answer: str | None) -> State:
        state = self._way.agent_state(self._here.box, self._here.session, last, self.task)
        return replace(state, answer=answer)

    def _gold_states(self, task: Task) -> list[State]:
        if not task.golds:
            raise GoldError(f"{task.id} has no gold: nothing to score against")
        return self._way.gold_states(task, self._open_place)
