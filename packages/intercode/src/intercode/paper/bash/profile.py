"""The profile ``original`` of Bash: what the authors' code does."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from intercode.core.errors import TooManyChangesError, UsageError
from intercode.core.types import TRUNCATED_CHANGES, ExecResult, Image, Layer, Network, State, Task
from intercode.environments.base.episode_context import EpisodeContext
from intercode.environments.base.profiles import GOLD_SECONDS
from intercode.environments.base.workspaces import SandboxWorkspace
from intercode.environments.bash.profiles import BashProfile, BashSettings
from intercode.paper import PROFILE
from intercode.paper.bash import git_status
from intercode.paper.bash.session import OriginalBashSession
from intercode.sessions.base import Session, SessionState
from intercode_sandbox import SandboxSpec
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.tiers.tier_table import tier_named


class OriginalBashProfile(BashProfile):
    """A shell per action, and git reads the changes.

    The gold runs again for every score, in one sandbox per episode that git resets before each run.
    So dates and ignored directories carry over.
    """

    name: ClassVar[str] = PROFILE
    has_exploits: ClassVar[bool] = True
    runs_golds_separately: ClassVar[bool] = False
    follows_dataset: ClassVar[bool] = False

    def __init__(self, settings: BashSettings) -> None:
        if settings.session != "persistent" or settings.separate_stderr:
            raise UsageError(
                "the original profile has its own session: leave out session and separate_stderr"
            )
        self._gold_sandbox: BaseSandbox | None = None

    def sandbox_spec(
        self, task: Task, image: Image, layers: tuple[Layer, ...], network: Network
    ) -> SandboxSpec:
        layers += (git_status.git_layer(image, layers),)
        return replace(super().sandbox_spec(task, image, layers, network), appearance="docker")

    def open_session(self, sandbox: BaseSandbox, task: Task, state: SessionState | None) -> Session:
        if task.initial_files:
            raise UsageError(
                f"{task.id} has initial files, which the profile original counts as changes of the "
                "agent: play it with the profile standard"
            )
        return OriginalBashSession(sandbox, state.cwd if state else "/")

    def prepare(self, workspace: SandboxWorkspace, task: Task) -> None:
        """The authors' code has no setups."""

    def agent_state(
        self, episode: EpisodeContext, last: ExecResult | None, answer: str | None
    ) -> State:
        # in the authors' code the output starts as the query
        output = last.output if last else episode.task.query
        try:
            copy = episode.workspace.sandbox.fork()
        except TooManyChangesError:
            return State(output, answer=answer, status=((TRUNCATED_CHANGES, "??"),))
        with copy:
            return replace(_git_state(copy, output), answer=answer)

    def gold_states(self, episode: EpisodeContext) -> list[State]:
        if self._gold_sandbox is None:
            self._gold_sandbox = episode.open_workspace().sandbox
            if not tier_named(episode.tier).own_layers:
                git_status.refresh(OriginalBashSession(self._gold_sandbox))
        session = OriginalBashSession(self._gold_sandbox)
        session.execute(git_status.RESET, "/", GOLD_SECONDS)
        result = session.execute(episode.task.golds[0], "/", GOLD_SECONDS)
        malformed = result.exit_code is None and not result.timed_out
        return [_git_state(self._gold_sandbox, None if malformed else result.output)]

    def close(self) -> None:
        if self._gold_sandbox is not None:
            self._gold_sandbox.close()
        self._gold_sandbox = None


def _git_state(sandbox: BaseSandbox, output: str | None) -> State:
    session = OriginalBashSession(sandbox)
    entries = git_status.status(session)
    return State(output, status=entries, checksums=git_status.checksums(session, entries))
