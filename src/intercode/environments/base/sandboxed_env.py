"""Environments whose code runs in a sandbox: images, places, snapshots."""

from __future__ import annotations

import platform
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from intercode.core.errors import UsageError
from intercode.core.types import Dataset, ExecResult, Image, Layer, Task, to_jsonable
from intercode.environments.base.diffs.file_diffs import FileDiffs
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.hashes import observation_hash, state_hash
from intercode.environments.base.layers import task_layer
from intercode.environments.base.options import pick_task
from intercode.environments.base.recycling import acquire_sandbox
from intercode.environments.base.snapshots import storage
from intercode.environments.base.snapshots.files import (
    CopiedFiles,
    SealedFiles,
    SnapshotFiles,
    should_seal,
)
from intercode.environments.base.snapshots.snapshot import Snapshot
from intercode.environments.base.task_instances import instantiate_task
from intercode.environments.base.workspaces import Prewarmer, Workspace
from intercode.sandbox import SandboxSpec, tier_of
from intercode.sandbox.images.build.on_demand import resolve_or_build
from intercode.sandbox.images.recipes.packaged import is_pinned
from intercode.sandbox.supervisor.client import SupervisedSandbox
from intercode.sessions.base import Session

_WORKSPACES_PER_EPISODE = 2
"""Places that one episode takes: the agent's and the gold's. An environment that takes more is used
again, and gets the next one made ready as well."""


class SandboxedEnv(InterCodeEnv):
    """Opens a place (a box and its session) per episode, the next one ahead of need.

    ``reuse``: boxes are renewed in place between episodes (see reuse.py), not made anew. ``diffs``:
    ``file_diffs`` tells how each turn changed its files. The other settings are InterCodeEnv's.
    """

    def __init__(
        self,
        dataset: str | Dataset = "starter",
        *,
        recycle: bool = False,
        record_diffs: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(dataset, **settings)
        self.recycle, self.record_diffs = recycle, record_diffs
        self._settings |= {"recycle": recycle, "record_diffs": record_diffs}

    _file_diffs: tuple[Workspace, FileDiffs] | None = None
    _workspace: Workspace | None = None
    _spec: SandboxSpec
    _workspaces_opened = 0

    @cached_property
    def image(self) -> Image:
        """The root file system, built or unpacked when it is first needed."""
        return resolve_or_build(self.image_name)

    @cached_property
    def _prewarmer(self) -> Prewarmer:
        return Prewarmer()

    @cached_property
    def _tier(self) -> str:
        return tier_of(self.sandbox_kind)

    def result_metadata(self) -> dict[str, Any]:
        return {
            **super().result_metadata(),
            "image": self.image.name,
            "image_digest": self.image.digest,
            "comparable": self.dataset.comparable and is_pinned(self.image),
            "arch": platform.machine(),
            "tier": self._tier,
            "determinism": to_jsonable(self.determinism),
            "sandboxes": "recycled" if self._recycles else "new",
        }

    @property
    def _recycles(self) -> bool:
        """Whether boxes serve again: containers do unasked, unless they have to be repeatable."""
        return self.determinism is None if self._tier.startswith("container/") else self.recycle

    @property
    def working_directory(self) -> str:
        return self._workspace.session.cwd if self._workspace else ""

    # ------------------------------------------------------ for the subclass
    @abstractmethod
    def _make_spec(self, layers: tuple[Layer, ...]) -> SandboxSpec:
        """What every box of an episode is made of."""

    @abstractmethod
    def _open_session(self, box: SupervisedSandbox, task: Task, state: Any) -> Session:
        """The session in a box; from a state of ``Session.state`` if one is given."""

    # ------------------------------------------------------------- the episode
    def _open_episode(self, task: Task) -> None:
        self._spec = self._spec_for(task)
        self._workspace = self._acquire_workspace()

    def _spec_for(self, task: Task) -> SandboxSpec:
        """What every box of an episode of the task is made of."""
        fixed = self.determinism
        now = fixed.fixed_time if fixed else None
        spec = self._make_spec(tuple(task_layer(s, self.image, now) for s in task.files))
        if fixed is not None:
            spec = replace(spec, determinism=fixed, hostname=fixed.hostname)
        return spec

    @property
    def _prewarm_key(self) -> Any:
        """What a place that was made ready must have been made for."""
        return self._spec, self.task.cwd, self.task.setup

    def _acquire_workspace(self) -> Workspace:
        """A fresh box with its session; the next one is then made ready in the background."""
        spec, task = self._spec, self.task
        key = self._prewarm_key
        place = self._prewarmer.take(key, lambda: self._create_workspace(spec, task))
        self._workspaces_opened += 1
        if self._workspaces_opened % 2 or self._workspaces_opened > _WORKSPACES_PER_EPISODE:
            self._prewarmer.prepare(key, lambda: self._create_workspace(spec, task))
        return place

    def _create_workspace(self, spec: SandboxSpec, task: Task) -> Workspace:
        box = acquire_sandbox(spec, self.sandbox_kind, self.recycle)
        try:
            return Workspace(
                box, self._open_session(box, self._with_image_cwd(task), None), self.recycle
            )
        except BaseException:
            box.close()
            raise

    def _with_image_cwd(self, task: Task) -> Task:
        """A task that names no directory begins in its image's."""
        return replace(task, cwd=self.image.cwd) if task.cwd == "/" else task

    def _close_episode(self) -> None:
        if self._workspace is not None:
            self._workspace.close()
        self._workspace = None

    def close(self) -> None:
        super().close()
        self._prewarmer.close()

    def set_last_result(self, result: ExecResult) -> None:
        """Take note of what was run in ``box`` by other means than a step: it is what was shown
        last, and what a reward that looks at output looks at."""
        self._last_result = result

    @property
    def sandbox(self) -> SupervisedSandbox:
        """The box of the running episode. Raises EnvironmentStateError where none runs."""
        self._require_running("box")
        return self._current_workspace.sandbox

    def abort(self) -> None:
        place = self._workspace
        if place is not None:
            place.sandbox.close()

    def _is_open(self) -> bool:
        return self._workspace is not None

    def _execute(self, action: str) -> ExecResult:
        here = self._current_workspace
        if self.record_diffs and (self._file_diffs is None or self._file_diffs[0] is not here):
            self._file_diffs = (
                here,
                FileDiffs(here.sandbox),
            )  # an episode that begins, or is gone back to
        return here.session.run(action, self.timeout)

    def file_diffs(self) -> dict[str, str]:
        watched = self._file_diffs
        return (
            {} if watched is None or watched[0] is not self._workspace else watched[1].next_turn()
        )

    def _hash_info(self, observation: str) -> dict[str, Any]:
        if not self.hashes:
            return {}
        box, session = self._current_workspace.sandbox, self._current_workspace.session
        state = state_hash(box.changes(), session.cwd, session.state_text())
        return {"hashes": {"observation": observation_hash(observation), "state": state}}

    def _changes(self) -> list[str]:
        return self._current_workspace.sandbox.changed_paths()

    @property
    def _current_workspace(self) -> Workspace:
        assert self._workspace is not None
        return self._workspace

    # --------------------------------------------------------------- snapshots
    def _capture(self) -> tuple[Any, tuple[str, ...], Callable[[], None]]:
        """Small files are copied; many or large ones are sealed, for which the episode moves on to
        a new box: not where something else runs in this one, nor where it has to be repeatable, as
        the shell has another process id afterwards."""
        place = self._current_workspace
        state, left = place.session.state(), place.sandbox.processes()
        if left or self.determinism is not None or not should_seal(place.sandbox):
            kept: SnapshotFiles = CopiedFiles(place.sandbox)
            return (self._spec, kept, state), left, kept.close
        place.session.close()
        kept = SealedFiles(place.sandbox)
        self._workspace = None
        try:
            self._restore_captured((self._spec, kept, state))
        except BaseException:
            kept.close()
            raise
        return (self._spec, kept, state), left, kept.close

    def _restore_captured(self, captured: Any, consume: bool = False) -> None:
        if isinstance(captured, storage.StoredSnapshot):
            spec = self._spec_for(self.task)
            captured = spec, captured.files(spec, self.sandbox_kind), captured.state
        self._spec, kept, state = captured
        box: SupervisedSandbox = kept.open_last() if consume else kept.open()
        try:
            self._workspace = Workspace(
                box, self._open_session(box, self._with_image_cwd(self.task), state)
            )
        except BaseException:
            box.close()
            raise

    def save_snapshot(self, snapshot: Snapshot, directory: str | Path) -> None:
        """Write a snapshot of this environment to an empty directory, from which an environment
        with the same dataset, profile and image can load it, in another process too.

        A Python interpreter is not kept: its actions are run again. Raises UsageError.
        """
        if isinstance(snapshot.captured, storage.StoredSnapshot):
            raise UsageError(f"this snapshot is in {snapshot.captured.path} already: copy that")
        kept, state = self._captured_parts(snapshot.captured)
        with kept.open() as box:
            storage.write_snapshot(Path(directory), snapshot, self.result_metadata(), box, state)

    def _captured_parts(self, held: Any) -> tuple[SnapshotFiles, Any]:
        """Files and session of what ``_hold`` gave."""
        return held[1], held[2]

    def load_snapshot(self, directory: str | Path) -> Snapshot:
        """Load a snapshot from a directory, for ``restore``.

        The directory has to stay until the snapshot is no longer used. Raises DataError if it holds
        no snapshot, UsageError if the snapshot is of another environment.
        """
        values, captured = storage.read_snapshot(Path(directory), self.result_metadata())
        index = pick_task(self.dataset, {"task": values["task"]}, self.np_random)
        task, task_seed = instantiate_task(
            self.dataset.tasks[index], values["task_seed"], self.np_random
        )
        return Snapshot(
            index=index, task=task, task_seed=task_seed, turns=values["turns"],
            last_result=values["last_result"], transcript=tuple(values["transcript"]),
            random_state=values["random_state"], previous_score=values["previous_score"],
            captured=captured, omitted_processes=tuple(values["omitted_processes"]),
            release=lambda: None,
        )  # fmt: skip
