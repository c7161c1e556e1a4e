"""A running episode as a profile sees it: what its sandboxes are, and how further ones open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

from intercode.core.errors import InfrastructureError
from intercode.core.types import Payload, Task
from intercode.environments.base.absolute_paths import require_relative_paths
from intercode.environments.base.diffs.initial_files import write_initial_files
from intercode.environments.base.episode import Episode
from intercode.environments.base.profiles import Profile
from intercode.environments.base.workspaces import (
    SandboxWorkspace,
    WorkspaceRequest,
    Workspaces,
    acquire_sandbox,
    closed_on_error,
)
from intercode.sessions.base import Session
from intercode_sandbox import SandboxSpec
from intercode_sandbox.contract import BaseSandbox


@dataclass(frozen=True, slots=True)
class EpisodeContext:
    """A running episode, as its profile sees it.

    ``spec``: the specification of each of its sandboxes. ``profile``: opens their sessions.
    ``workspaces``: opens them, on one back end.
    """

    episode: Episode
    spec: SandboxSpec
    profile: Profile
    workspaces: Workspaces

    @property
    def task(self) -> Task:
        """The task that is played."""
        return self.episode.task

    @property
    def workspace(self) -> SandboxWorkspace:
        """The agent's workspace. Raises EnvironmentStateError if the episode is not open."""
        return cast(SandboxWorkspace, self.episode.require_workspace())

    @property
    def step_rewards(self) -> tuple[Mapping[str, float], ...]:
        """The rewards of the steps that were submitted, of a task that has several."""
        return self.episode.step_rewards

    @property
    def backend(self) -> str:
        """The back end of the sandboxes."""
        return self.workspaces.backend

    @property
    def tier(self) -> str:
        """The isolation tier of the sandboxes."""
        return self.workspaces.tier

    @property
    def request(self) -> WorkspaceRequest:
        """What the workspaces of the episode have to be, before their tasks are prepared."""
        task = self.episode.task
        key = self.spec, task.cwd, self.profile.session_key(task)
        return WorkspaceRequest(key, self.spec, self.open_session)

    def open_session(self, sandbox: BaseSandbox, state: Any = None) -> Session:
        """Open a session, in the directory of the task, or else of the image."""
        task = self.episode.task
        if task.cwd == "/" != self.spec.image.cwd:
            task = replace(task, cwd=self.spec.image.cwd)
        session: Session = self.profile.open_session(sandbox, task, state)
        return session

    def open_workspace(self) -> SandboxWorkspace:
        """Open another workspace, in the state in which the episode began. The caller closes it."""
        with closed_on_error(self.workspaces.open(self.request)) as workspace:
            self._prepare(workspace)
            return workspace

    @contextmanager
    def gold_workspace(self) -> Iterator[SandboxWorkspace]:
        """Open another workspace for code of the dataset only, so that its sandbox may serve
        further golds."""
        with self.workspaces.open_for_gold(self.request) as workspace:
            self._prepare(workspace)
            yield workspace

    def _prepare(self, workspace: SandboxWorkspace) -> None:
        """Bring a new workspace into the state in which the task begins. Not part of a prewarmed
        one, so that it can be used for every task with the same files."""
        task = self.episode.task
        require_relative_paths(task, workspace.sandbox)
        self.profile.prepare(workspace, task)
        write_initial_files(workspace.sandbox, task.initial_files)

    def open_test_workspace(self) -> SandboxWorkspace:
        """Open a workspace for hidden tests: without the paths in ``absent_in_tests``.

        Raises InfrastructureError if they cannot be removed.
        """
        workspace, absent = self.open_workspace(), Payload.of(self.task).absent_in_tests
        if absent:
            with closed_on_error(workspace):
                result = workspace.sandbox.run(["rm", "-rf", "--", *absent], cwd=workspace.cwd)
                if not result.ok:
                    raise InfrastructureError(f"rm cannot remove {absent}: {result.output}")
        return workspace

    def open_sandbox(self) -> BaseSandbox:
        """Open a sandbox in the state in which the episode began."""
        return acquire_sandbox(self.spec, self.backend, recycle=False)
