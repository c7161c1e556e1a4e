"""The profile ``original`` of Capture the Flag: what the authors' code does."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from intercode.core.types import Image, Layer, Network, State, Task
from intercode.environments.base.episode_context import EpisodeContext
from intercode.environments.ctf.profiles import CtfProfile
from intercode.paper import PROFILE
from intercode.paper.bash.git_status import git_layer
from intercode.paper.bash.session import OriginalBashSession, wrap_ctf_action
from intercode.sessions.base import Session, SessionState
from intercode_sandbox import SandboxSpec
from intercode_sandbox.contract import BaseSandbox


class OriginalCtfProfile(CtfProfile):
    """Every action runs in a new shell, and upper and lower case are equal in flags."""

    name: ClassVar[str] = PROFILE
    has_exploits: ClassVar[bool] = True
    runs_golds_separately: ClassVar[bool] = False
    follows_dataset: ClassVar[bool] = False
    wrong_flag: ClassVar[str] = "Submitted flag is incorrect. Keep trying!"

    def sandbox_spec(
        self, task: Task, image: Image, layers: tuple[Layer, ...], network: Network
    ) -> SandboxSpec:
        spec = super().sandbox_spec(task, image, layers, network)
        layers = (*spec.layers, git_layer(image, spec.layers))
        return replace(spec, layers=layers, appearance="docker")

    def open_session(self, sandbox: BaseSandbox, task: Task, state: SessionState | None) -> Session:
        return OriginalBashSession(sandbox, state.cwd if state else task.cwd, wrap_ctf_action)

    def gold_states(self, episode: EpisodeContext) -> list[State]:
        return [State(answer=episode.task.flag)]
