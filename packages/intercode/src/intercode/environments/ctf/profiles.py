"""The profile ``standard`` of Capture the Flag, and what its other profiles implement."""

from __future__ import annotations

from typing import ClassVar

from intercode.core.errors import GoldError
from intercode.core.types import ExecResult, Image, Layer, Network, Score, State, Task
from intercode.datasets.payloads import CtfPayload
from intercode.environments.base.episode import Episode
from intercode.environments.base.episode_context import EpisodeContext
from intercode.environments.base.layers import setup_layer
from intercode.environments.base.profiles import Profile
from intercode.environments.base.workspaces import SandboxWorkspace
from intercode.sessions.base import Session, SessionState
from intercode.sessions.bash.persistent import BashSession
from intercode_sandbox import SandboxSpec
from intercode_sandbox.contract import BaseSandbox


class CtfProfile(Profile):
    """One shell per episode. ``wrong_flag``: the observation after a wrong flag."""

    wrong_flag: ClassVar[str] = "That is not the flag. The episode goes on.\n"

    def require_gold(self, task: Task) -> None:
        if task.flag is None:
            raise GoldError(f"{task.id} has no flag: nothing to compare an answer with")

    def sandbox_spec(
        self, task: Task, image: Image, layers: tuple[Layer, ...], network: Network
    ) -> SandboxSpec:
        wants_network = CtfPayload.of(task).network_setup if network == "host" else None
        if code := task.setup or wants_network:
            layers += (setup_layer(code, task.cwd, image, layers, network),)
        return super().sandbox_spec(task, image, layers, network)

    def prepare(self, workspace: SandboxWorkspace, task: Task) -> None:
        """The setup is a layer of the sandbox."""

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

    def reply_to_answer(self, episode: Episode, score: Score) -> tuple[str, bool] | None:
        return None if score.success or episode.answer is None else (self.wrong_flag, True)
