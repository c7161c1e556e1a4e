"""Bash: do what a sentence asks for, in a shell of your own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

from intercode.core.errors import GoldError, UsageError
from intercode.core.registry import unknown_name_error
from intercode.core.types import Dataset, ExecResult, Layer, State, Task
from intercode.environments.base import gold_cache
from intercode.environments.base.probe import run_probe
from intercode.environments.base.recycling import acquire_sandbox
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.environments.bash.profiles import (
    SHELL_KINDS,
    BashProfile,
    OriginalBashProfile,
    ShellKind,
    StandardBashProfile,
)
from intercode.sandbox import SandboxSpec
from intercode.sandbox.supervisor.client import SupervisedSandbox
from intercode.sessions.base import Session, SessionState


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
        separate_stderr: bool = False,
        use_gold_cache: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__(dataset, **settings)
        if session not in SHELL_KINDS:
            raise unknown_name_error("session", session, list(SHELL_KINDS))
        if self.profile == "original" and (session != "persistent" or separate_stderr):
            raise UsageError("the original profile has a session of its own: leave out session")
        self.session, self.separate_stderr, self.use_gold_cache = (
            session,
            separate_stderr,
            use_gold_cache,
        )
        self._settings |= {
            "session": session,
            "separate_stderr": separate_stderr,
            "use_gold_cache": use_gold_cache,
        }

    @cached_property
    def _profile_impl(self) -> BashProfile:
        if self.profile == "original":
            return OriginalBashProfile()
        return StandardBashProfile(self.session, self.separate_stderr, self._run_probe)

    def _run_probe(self, box: SupervisedSandbox, gold: bool) -> str:
        def fresh() -> SupervisedSandbox:
            return acquire_sandbox(self._spec, self.sandbox_kind, False)

        return run_probe(self.task, box, fresh, gold)

    def _make_spec(self, layers: tuple[Layer, ...]) -> SandboxSpec:
        return self._profile_impl.sandbox_spec(self.image, layers, self.network)

    def _open_session(
        self, box: SupervisedSandbox, task: Task, state: SessionState | None
    ) -> Session:
        return self._profile_impl.open_session(box, task, state)

    def _close_episode(self) -> None:
        self._profile_impl.close()
        super()._close_episode()

    def _agent_state(self, last: ExecResult | None, answer: str | None) -> State:
        state = self._profile_impl.agent_state(
            self._current_workspace.sandbox, self._current_workspace.session, last, self.task
        )
        return replace(state, answer=answer)

    def _gold_states(self, task: Task) -> list[State]:
        if not task.golds:
            raise GoldError(f"{task.id} has no gold: nothing to score against")
        return self._profile_impl.gold_states(
            task, self._acquire_workspace, self._cached_gold_states
        )

    # ------------------------------------------------------------- kept golds
    def result_metadata(self) -> dict[str, Any]:
        golds = "cached" if self._uses_gold_cache else "run"
        plain = self.session == "persistent" and not self.separate_stderr
        options = {} if plain else {"session": self.session, "separate_stderr": self.separate_stderr}
        return {**super().result_metadata(), "env_options": options, "golds": golds}

    @property
    def _shell_key(self) -> str:
        shell = f"{self.session}, separate stderr" if self.separate_stderr else self.session
        return f"{shell}, {tier}" if (tier := self._tier).startswith("container/") else shell

    @property
    def _uses_gold_cache(self) -> bool:
        return self.use_gold_cache and self.profile == "standard" and gold_cache.is_enabled()

    def _cached_gold_states(self) -> list[State] | None:
        known = (
            self._uses_gold_cache and self.task.probe is None
        )  # a look is no part of what is kept
        return gold_cache.load_golds(self.task, self._spec, self._shell_key) if known else None

    def cache_golds(self, states: Sequence[State], current_dates_only: bool) -> bool:
        """See ``proven.KeepsGolds``."""
        if self.profile != "standard" or self.task.probe is not None:
            return False
        return gold_cache.save_golds(
            self.task, self._spec, self._shell_key, states, current_dates_only
        )
