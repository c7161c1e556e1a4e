"""Makes environments again from their dataset and settings, also in other processes.

A pickle of a running episode holds its snapshot, in environments that can store one.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Self

from intercode.core.types import Dataset
from intercode.environments.base.settings import EnvironmentSettings

_STATE_OF_GYMNASIUM = ("spec", "_np_random", "_np_random_seed", "action_space", "observation_space")
"""The attributes that a pickle holds besides dataset and settings."""
_PACKED_EPISODE = "packed_episode"
"""The key of the running episode in a pickle."""


class Copyable:
    """The part of an environment that makes others like it."""

    dataset: Dataset
    settings: EnvironmentSettings
    snapshots: Any
    """Saves and restores workspaces."""
    _current: Any = None
    """The episode, if there was one."""

    def new_like(self) -> Self:
        """Return an environment with the same dataset and settings, before its first ``reset``."""
        return type(self)(self.dataset, **vars(self.settings))  # type: ignore[call-arg]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle dataset, settings, random state and the snapshot of a running episode.

        Raises EnvironmentStateError within an episode whose snapshot cannot be stored.
        """
        state = {name: v for name, v in vars(self).items() if name in _STATE_OF_GYMNASIUM}
        if self._current is not None and self._current.running:
            state[_PACKED_EPISODE] = self.snapshots.pack()
        return partial(type(self), **vars(self.settings)), (self.dataset,), state

    def __setstate__(self, state: dict[str, Any]) -> None:
        packed = state.pop(_PACKED_EPISODE, None)
        vars(self).update(state)
        if packed is not None:
            self.snapshots.unpack(packed)
