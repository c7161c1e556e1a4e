"""The base class of environments whose code runs in a sandbox: images, workspaces, snapshots."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self, TypeGuard, cast

from intercode.core.errors import UsageError
from intercode.core.types import Dataset, Image, Task, to_jsonable
from intercode.environments.base.diffs.file_diffs import TurnDiffs
from intercode.environments.base.diffs.initial_files import changes_of_agent
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.episode import Capture, Snapshots
from intercode.environments.base.episode_context import EpisodeContext
from intercode.environments.base.layers import task_layer
from intercode.environments.base.options import choose_task
from intercode.environments.base.settings import SandboxSettings, pick_limits
from intercode.environments.base.snapshots import storage
from intercode.environments.base.snapshots.snapshot import EnvironmentSnapshot
from intercode.environments.base.snapshots.storage import pack_snapshot, unpack_snapshot
from intercode.environments.base.workspaces import (
    SandboxWorkspace,
    Workspaces,
    closed_on_error,
)
from intercode_sandbox import SandboxSpec, architecture_of, resolve_image
from intercode_sandbox.backends import check_backend, check_image
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.doctor_checks import lowered_hard_limits
from intercode_sandbox.images.cache.staging import staging_directory
from intercode_sandbox.images.recipes.packaged import is_pinned


class FileSnapshots(Snapshots):
    """Copies few and small files, and seals many or large ones as a layer.

    Sealing moves the episode to a new sandbox, in which the shell has another process id. So
    nothing is sealed if background processes run or the episode is deterministic.

    >>> from intercode.environments import BashEnv, FileSnapshots
    >>> class ObservedSnapshots(FileSnapshots):
    ...     def capture(self):
    ...         print("after", self.env.episode.turns, "turn")
    ...         return super().capture()
    >>> class ObservedEnv(BashEnv):
    ...     snapshots_class = ObservedSnapshots
    >>> with ObservedEnv() as env:
    ...     _ = env.reset(seed=1), env.step("touch a")
    ...     env.snapshot().close()
    after 1 turn
    """

    env: SandboxedEnv

    def capture(self) -> Capture:
        env, spec, workspace = self.env, self.env.context.spec, self.env.context.workspace
        state, processes = workspace.session.state(), workspace.sandbox.processes()
        if processes or env.determinism is not None or not workspace.sandbox.should_seal():
            files = workspace.sandbox.snapshot()
            return storage.SavedWorkspace(spec, files, state), processes, files.close
        workspace.session.close()
        files = workspace.sandbox.seal()
        saved = storage.SavedWorkspace(spec, files, state)
        env.episode.workspace = None
        try:
            env.episode.workspace = self.restore(saved)
        except BaseException:
            files.close()
            raise
        return saved, processes, files.close

    def restore(self, captured: Any, consume: bool = False) -> SandboxWorkspace:
        saved = self.saved_workspace(captured)
        opened: BaseSandbox = saved.files.open_last() if consume else saved.files.open()
        with closed_on_error(opened) as sandbox:
            return SandboxWorkspace(sandbox, self.env.context.open_session(sandbox, saved.state))

    def saved_workspace(self, captured: Any) -> Any:
        """Return what was captured, also of a stored snapshot. The episode then has the sandboxes
        of that."""
        if isinstance(captured, storage.StoredSnapshot):
            captured = captured.workspace(self.env.context.spec, self.env.backend)
        self.env.episode.spec = captured.spec
        return captured

    def pack(self) -> dict[str, bytes]:
        with self.env.snapshot() as snapshot, staging_directory() as directory:
            self.env.save_snapshot(snapshot, directory)
            return pack_snapshot(directory)

    def unpack(self, packed: dict[str, bytes]) -> None:
        with staging_directory() as directory:
            unpack_snapshot(packed, directory)
            self.env.restore(self.env.load_snapshot(directory))


class SandboxedEnv(InterCodeEnv):
    """An environment that runs code in a workspace: a sandbox with a session."""

    settings_class: ClassVar[type[SandboxSettings]] = SandboxSettings
    settings: SandboxSettings
    snapshots_class: ClassVar[type[Snapshots]] = FileSnapshots

    def __init__(self, dataset: str | Dataset = "starter", **settings: Any) -> None:
        super().__init__(dataset, **settings)
        check_backend(self.backend)
        if self.image_name:
            check_image(self.image_name, self.backend)
        self.tools.locate = lambda: (self.scored_sandbox, self.working_directory)

    @cached_property
    def image(self) -> Image:
        """The root file system. Built or unpacked on first use."""
        return resolve_image(self.image_name, self.backend)

    @cached_property
    def _workspaces(self) -> Workspaces:
        deterministic = self.determinism is not None
        return Workspaces(self.backend, self.settings.recycle, deterministic)

    @cached_property
    def diffs(self) -> TurnDiffs:
        return TurnDiffs(self.settings.record_diffs)

    def result_metadata(self) -> dict[str, Any]:
        return {
            **super().result_metadata(),
            **self.image_metadata(),
            "arch": architecture_of(self.backend),
            "tier": (tier := self._workspaces.tier),
            "determinism": to_jsonable(self.determinism),
            "sandboxes": "recycled" if self._workspaces.recycles else "new",
            **({"limits": self.settings.limits} if self.settings.limits else {}),
            **({"hard_limits": kept} if (kept := lowered_hard_limits(tier)) else {}),
        }

    def image_metadata(self) -> dict[str, Any]:
        """Return what results record of the image, and whether it makes them comparable."""
        return {
            "image": self.image.name,
            "image_digest": self.image.digest,
            "comparable": self.dataset.comparable and is_pinned(self.image),
        }

    def new_like(self) -> Self:
        new = super().new_like()
        if "image" in vars(self):  # resolving its name again takes a part of each fork
            new.image = self.image
        return new

    # ----------------------------------------------------------- the episode
    @property
    def context(self) -> EpisodeContext:
        """The episode as its profile sees it. Raises EnvironmentStateError before the first episode
        and after the end of one."""
        episode = self.episode
        if episode.is_closed:
            episode.require_workspace()
        if episode.spec is None:
            episode.spec = self._spec_for(episode.task)
        return EpisodeContext(episode, episode.spec, self._profile_impl, self._workspaces)

    def open_workspace(self) -> SandboxWorkspace:
        return self.context.open_workspace()

    def _spec_for(self, task: Task) -> SandboxSpec:
        """Return the specification of every sandbox of an episode of this task."""
        determinism = self.determinism
        now = determinism.fixed_time if determinism else None
        extra = self.settings.extra_layers(self.image) if self.settings.extra_layers else ()
        files = (task_layer(s, self.image, now) for s in task.files)
        spec = self._profile_impl.sandbox_spec(task, self.image, (*extra, *files), self.network)
        if self.settings.limits:
            chosen: dict[str, Any] = pick_limits(self.settings.limits)
            spec = replace(spec, limits=replace(spec.limits, **chosen))
        if determinism is None:
            return spec
        return replace(spec, determinism=determinism, hostname=determinism.hostname)

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._workspaces.close()

    @property
    def sandbox(self) -> BaseSandbox:
        """The sandbox of the running episode. Raises EnvironmentStateError if none is running."""
        self.episode.require_running("sandbox")
        return self.scored_sandbox

    @property
    def scored_sandbox(self) -> BaseSandbox:
        """The sandbox that ``score`` reads: as ``sandbox``, also after the episode until the next.

        Raises EnvironmentStateError before the first episode and after ``close``.
        """
        return cast(SandboxWorkspace, self.episode.require_workspace()).sandbox

    def check_machine(self) -> None:
        with self.context.open_sandbox() as sandbox:
            sandbox.changed_paths()

    def changed_paths(self) -> list[str]:
        if not self.task.initial_files:
            return super().changed_paths()
        return list(changes_of_agent(self.scored_sandbox, self.task))

    def save_snapshot(self, snapshot: EnvironmentSnapshot, directory: str | Path) -> None:
        """Write a snapshot of this environment to an empty directory.

        ``load_snapshot`` of an environment with the same dataset, profile and image reads it, also
        in another process. A Python interpreter is not saved: its actions run again. Raises
        UsageError if the directory is not empty or cannot be written.
        """
        if isinstance(snapshot.captured, storage.StoredSnapshot):
            path = snapshot.captured.path
            raise UsageError(f"this snapshot is stored in {path} already: copy that directory")
        with snapshot.captured.files.open() as sandbox:
            metadata, state = self.result_metadata(), snapshot.captured.state
            storage.write_snapshot(Path(directory), snapshot, metadata, sandbox, state)

    def load_snapshot(self, directory: str | Path) -> EnvironmentSnapshot:
        """Load a snapshot from a directory, for ``restore``.

        The directory has to stay until the snapshot is no longer used. Raises DataError if it holds
        no snapshot, UsageError if the snapshot is of another environment.
        """
        values, captured = storage.read_snapshot(Path(directory), self.result_metadata())
        index, task, task_seed = choose_task(
            self.dataset, {"task": values.task}, values.task_seed, self.np_random
        )
        return EnvironmentSnapshot(
            index=index,
            task=task,
            task_seed=task_seed,
            turns=values.turns,
            last_result=values.last_result,
            transcript=values.transcript,
            random_state=values.random_state,
            previous_score=values.previous_score,
            captured=captured,
            omitted=values.omitted,
            step_rewards=values.step_rewards,
            release=lambda: None,
        )


def uses_sandbox(env: object) -> TypeGuard[SandboxedEnv]:
    """Return whether an environment runs its actions in a sandbox of this machine."""
    return isinstance(env, SandboxedEnv)
