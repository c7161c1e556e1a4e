"""The profile ``standard`` of Capture the Flag, and what its other profiles implement."""

from __future__ import annotations

from typing import ClassVar

from intercode.core.types import ExecResult, State, Task
from intercode.datasets.payloads import CtfPayload
from intercode.environments.base.profiles import Profile
from intercode.environments.base.workspaces import EpisodeContext
from intercode.sessions.base import Session, SessionState
from intercode.sessions.bash.persistent import BashSession
from intercode_sandbox.contract import BaseSandbox


class CtfProfile(Profile):
    """One shell per episode. ``wrong_flag``: the observation after a wrong flag."""

    wrong_flag: ClassVar[str] = "That is not the flag. The episode goes on.\n"

    def open_session(self, sandbox: BaseSandbox, task: Task, state: SessionState | None) -> Session:
        return BashSession(sandbox, cwd=task.cwd, state=state)

    def agent_state(
        self,
        episode: EpisodeContext,  # noqa: ARG002
        last: ExecResult | None,
        answer: str | None,
    ) -> State:
        return State(last.output if last else "", answer=answer)

    def gold_states(self, episode: EpisodeContext) -> list[State]:
        task = episode.task
        return [State(answer=flag) for flag in (task.flag, *CtfPayload.of(task).also_flags)]
