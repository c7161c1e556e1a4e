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
from intercode.core.types import Dataset, ExecResult, Image, Layer, Task, plain
from intercode.environments.base.diffs.file_diffs import FileDiffs
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.hashes import of_observation, of_state
from intercode.environments.base.layers import task_layer
from intercode.environments.base.options import pick_task
from intercode.environments.base.recycling import open_box
from intercode.environments.base.snapshots import storage
from intercode.environments.base.snapshots.files import (
    CopiedFiles,
    KeptFiles,
    SealedFiles,
    worth_sealing,
)
from intercode.environments.base.snapshots.snapshot import Snapshot
from intercode.environments.base.task_instances import drawn
from intercode.environments.base.workspaces import Place, Spare
from intercode.sandbox import SandboxSpec, tier_of
from intercode.sandbox.images.build.on_demand import resolve
from intercode.sandbox.images.recipes.packaged import pinned
from intercode.sandbox.supervisor.client import KeptSandbox
from intercode.sessions.base import Session

_ONCE = 2
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
        reuse: bool = False,
        diffs: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(dataset, **settings)
        self.reuse, self.diffs = reuse, diffs
        self._settings |= {"reuse": reuse, "diffs": diffs}

    _watched: tuple[Place, FileDiffs] | None = None
    _place: Place | None = None
    _spec: SandboxSpec
    _opened = 0

    @cached_property
    def image(self) -> Image:
        """The root file system, built or unpacked when it is first needed."""
        return resolve(self.image_name)

    @cached_property
    def _spare(self) -> Spare:
        return Spare()

    @cached_property
    def _tier(self) -> str:
        return tier_of(self.sandbox_kind)

    def facts(self) -> dict[str, Any]:
        return {
            **super().facts(),
            "image": self.image.name,
            "image_digest": self.image.digest,
            "comparable": self.dataset.comparable and pinned(self.image),
            "arch": platform.machine(),
            "tier": self._tier,
            "determinism": plain(self.determinism),
            "boxes": "renewed" if self._renews else "new",
        }

    @property
    def _renews(self) -> bool:
        """Whether boxes serve again: containers do unasked, unless they have to be repeatable."""
        return self.determinism is None if self._tier.startswith("container/") else self.reuse

    @property
    def working_directory(self) -> str:
        return self._place.session.cwd if self._place else ""

    # ------------------------------------------------------ for the subclass
    @abstractmethod
    def _make_spec(self, layers: tuple[Layer, ...]) -> SandboxSpec:
        """What every box of an episode is made of."""

    @abstractmethod
    def _open_session(self, box: KeptSandbox, task: Task, state: Any) -> Session:
        """The session in a box; from a state of ``Session.state`` if one is given."""

    # ------------------------------------------------------------- the episode
    def _open_episode(self, task: Task) -> None:
        self._spec = self._spec_of(task)
        self._place = self._open_place()

    def _spec_of(self, task: Task) -> SandboxSpec:
        """What every box of an episode of the task is made of."""
        fixed = self.determinism
        now = fixed.stands_at if fixed else None
        spec = self._make_spec(tuple(task_layer(s, self.image, now) for s in task.files))
        if fixed is not None:
            spec = replace(spec, determinism=fixed, hostname=fixed.hostname)
        return spec

    @property
    def _key(self) -> Any:
        """What a place that was made ready must have been made for."""
        return self._spec, self.task.cwd, self.task.setup

    def _open_place(self) -> Place:
        """A fresh box with its session; the next one is then made ready in the background."""
        spec, task = self._spec, self.task
        key = self._key
        place = self._spare.take(key, lambda: self._make_place(spec, task))
        self._opened += 1
        if self._opened % 2 or self._opened > _ONCE:
            self._spare.prepare(key, lambda: self._make_place(spec, task))
        return place

    def _make_place(self, spec: SandboxSpec, task: Task) -> Place:
        box = open_box(spec, self.sandbox_kind, self.reuse)
        try:
            return Place(box, self._open_session(box, self._begun(task), None), self.reuse)
        except BaseException:
            box.close()
            raise

    def _begun(self, task: Task) -> Task:
        """A task that names no directory begins in its image's."""
        return replace(task, cwd=self.image.cwd) if task.cwd == "/" else task

    def _close_episode(self) -> None:
        if self._place is not None:
            self._place.close()
        self._place = None

    def close(self) -> None:
        super().close()
        self._spare.close()

    def observed(self, result: ExecResult) -> None:
        """Take note of what was run in ``box`` by other means than a step: it is what was shown
        last, and what a reward that looks at output looks at."""
        self._last = result

    @property
    def box(self) -> KeptSandbox:
        """The box of the running episode. Raises EnvironmentStateError where none runs."""
        self._require_live("box")
        return self._here.box

    def abort(self) -> None:
        place = self._place
        if place is not None:
            place.box.close()

    def _is_open(self) -> bool:
        return self._place is not None

    def _execute(self, action: str) -> ExecResult:
        here = self._here
        if self.diffs and (self._watched is None or self._watched[0] is not here):
            self._watched = here, FileDiffs(here.box)  # an episode that begins, or is gone back to
        return here.session.run(action, self.timeout)

    def file_diffs(self) -> dict[str, str]:
        watched = self._watched
        return {} if watched is None or watched[0] is not self._place else watched[1].turn()

    def _hashed(self, observation: str) -> dict[str, Any]:
        if not self.hashes:
            return {}
        box, session = self._here.box, self._here.session
        state = of_state(box.changes(), session.cwd, session.told())
        return {"hashes": {"observation": of_observation(observation), "state": state}}

    def _changes(self) -> list[str]:
        return self._here.box.changed()

    @property
    def _here(self) -> Place:
        assert self._place is not None
        return self._place

    # --------------------------------------------------------------- snapshots
    def _hold(self) -> tuple[Any, tuple[str, ...], Callable[[], None]]:
        """Small files are copied; many or large ones are sealed, for which the episode moves on to
        a new box: not where something else runs in this one, nor where it has to be repeatable, as
        the shell has another process id afterwards."""
        place = self._here
        state, left = place.session.state(), place.box.processes()
        if left or self.determinism is not None or not worth_sealing(place.box):
            kept: KeptFiles = CopiedFiles(place.box)
            return (self._spec, kept, state), left, kept.close
        place.session.close()
        kept = SealedFiles(place.box)
        self._place = None
        try:
            self._resume((self._spec, kept, state))
        except BaseException:
            kept.close()
            raise
        return (self._spec, kept, state), left, kept.close

    def _resume(self, held: Any, last: bool = False) -> None:
        if isinstance(held, storage.Stored):
            spec = self._spec_of(self.task)
            held = spec, held.files(spec, self.sandbox_kind), held.state
        self._spec, kept, state = held
        box: KeptSandbox = kept.take() if last else kept.open()
        try:
            self._place = Place(box, self._open_session(box, self._begun(self.task), state))
        except BaseException:
            box.close()
            raise

    def save_snapshot(self, snapshot: Snapshot, directory: str | Path) -> None:
        """Write a snapshot of this environment to an empty directory, from which an environment
        with the same dataset, profile and image can load it, in another process too.

        A Python interpreter is not kept: its actions are run again. Raises UsageError.
        """
        if isinstance(snapshot.held, storage.Stored):
            raise UsageError(f"this snapshot is in {snapshot.held.path} already: copy that")
        kept, state = self._kept(snapshot.held)
        with kept.open() as box:
            storage.write(Path(directory), snapshot, self.facts(), box, state)

    def _kept(self, held: Any) -> tuple[KeptFiles, Any]:
        """Files and session of what ``_hold`` gave."""
        return held[1], held[2]

    def load_snapshot(self, directory: str | Path) -> Snapshot:
        """The snapshot that a directory holds, to be given to ``restore``. The directory has to
        stay as long as it is used. Raises DataError, or UsageError for another environment's."""
        told, held = storage.read(Path(directory), self.facts())
        index = pick_task(self.dataset, {"task": told["task"]}, self.np_random)
        task, drawn_from = drawn(self.dataset.tasks[index], told["drawn_from"], self.np_random)
        return Snapshot(
            index, task, drawn_from, told["turns"], told["last"], tuple(told["transcript"]),
            told["random_state"], told["potential"], held, tuple(told["left_behind"]), lambda: None,
        )  # fmt: skip
