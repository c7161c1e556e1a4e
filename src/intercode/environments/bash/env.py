"""Bash: do what a sentence asks for, in a shell of your own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

from intercode.core.errors import GoldError, UsageError
from intercode.core.registry import unknown
from intercode.core.types import Dataset, ExecResult, Layer, State, Task
from intercode.environments.base import gold_cache
from intercode.environments.base.probe import looked
from intercode.environments.base.recycling import open_box
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.environments.bash.profiles import SHELLS, BashProfile, Original, ShellKind, Standard
from intercode.sandbox import SandboxSpec
from intercode.sandbox.supervisor.client import KeptSandbox
from intercode.sessions.base import Session
from intercode.sessions.bash.shell_state import SessionState


class BashEnv(SandboxedEnv):
    """Answer a request in Bash; the reward looks at what was printed and at the file system.

    In the ``standard`` profile one shell lives as long as the episode (``session="persistent"``);
    or each action has a new one, which knows the last one's directory only (``"fresh"``), or its
    variables, functions and options too (``"fresh-carried"``). In ``original`` every action is a
    shell of its own and git sees the changes, as in the authors' code. ``apart``: stderr is shown
    after stdout, not merged into it, and is no output that the reward looks at.

    ``cached_golds``: where `check` has proven that a task's golds always do the same, what they
    leave is not found out again (``standard`` only). The other settings are InterCodeEnv's.
    """

    name: ClassVar[str] = "bash"
    scoring_version: ClassVar[int] = 2  # 2: notes in brackets are no output

    def __init__(
        self,
        dataset: str | Dataset = "starter",
        *,
        session: ShellKind = "persistent",
        apart: bool = False,
        cached_golds: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__(dataset, **settings)
        if session not in SHELLS:
            raise unknown("session", session, list(SHELLS))
        if self.profile == "original" and (session != "persistent" or apart):
            raise UsageError("the original profile has a session of its own: leave out session")
        self.session, self.apart, self.cached_golds = session, apart, cached_golds
        self._settings |= {"session": session, "apart": apart, "cached_golds": cached_golds}

    @cached_property
    def _way(self) -> BashProfile:
        if self.profile == "original":
            return Original()
        return Standard(self.session, self.apart, self._look)

    def _look(self, box: KeptSandbox, gold: bool) -> str:
        def fresh() -> KeptSandbox:
            return open_box(self._spec, self.sandbox_kind, False)

        return looked(self.task, box, fresh, gold)

    def _make_spec(self, layers: tuple[Layer, ...]) -> SandboxSpec:
        return self._way.spec(self.image, layers, self.network)

    def _open_session(self, box: KeptSandbox, task: Task, state: SessionState | None) -> Session:
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
        return self._way.gold_states(task, self._open_place, self._known)

    # ------------------------------------------------------------- kept golds
    def facts(self) -> dict[str, Any]:
        golds = "cached where proven" if self._caches else "run"
        plain = self.session == "persistent" and not self.apart
        options = {} if plain else {"session": self.session, "apart": self.apart}
        return {**super().facts(), "env_options": options, "golds": golds}

    @property
    def _shell(self) -> str:
        shell = f"{self.session}, stderr apart" if self.apart else self.session
        return f"{shell}, {tier}" if (tier := self._tier).startswith("container/") else shell

    @property
    def _caches(self) -> bool:
        return self.cached_golds and self.profile == "standard" and gold_cache.enabled()

    def _known(self) -> list[State] | None:
        known = self._caches and self.task.look is None  # a look is no part of what is kept
        return gold_cache.load(self.task, self._spec, self._shell) if known else None

    def keep_golds(self, states: Sequence[State], dated: bool) -> bool:
        """See ``proven.KeepsGolds``."""
        if self.profile != "standard" or self.task.look is not None:
            return False
        return gold_cache.save(self.task, self._spec, self._shell, states, dated)
