"""Makes environments again from their dataset and settings, also in other processes.

An episode holds processes, which no pickle can hold. ``fork`` copies it within a process, and
``save_snapshot`` writes it to a directory that ``load_snapshot`` reads in another process.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Self

from intercode.core.errors import EnvironmentStateError
from intercode.core.types import Dataset

_STATE_OF_GYMNASIUM = (
    "spec", "_np_random", "_np_random_seed", "action_space", "observation_space"
)  # fmt: skip
"""The attributes that a pickle holds besides dataset and settings."""


class Copyable:
    """The part of an environment that makes others like it."""

    dataset: Dataset
    settings: dict[str, Any]
    _running: bool

    def new_like(self) -> Self:
        """Return an environment with the same dataset and settings, before its first ``reset``."""
        return type(self)(self.dataset, **self.settings)  # type: ignore[call-arg]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle dataset, settings and random state.

        Raises EnvironmentStateError while an episode is running.
        """
        if self._running:
            raise EnvironmentStateError(
                "an environment cannot be pickled within an episode: call end_episode() first, or "
                "copy the episode with fork(), or with save_snapshot() and load_snapshot()"
            )
        state = {name: v for name, v in vars(self).items() if name in _STATE_OF_GYMNASIUM}
        return partial(type(self), **self.settings), (self.dataset,), state
