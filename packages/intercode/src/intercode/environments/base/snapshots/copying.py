"""Makes environments again from their dataset and settings, also in other processes.

A pickle of a running episode holds its snapshot, in environments that can store one.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Self

from intercode.core.errors import EnvironmentStateError
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
            state[_PACKED_EPISODE] = self._pack_episode()
        return partial(type(self), **vars(self.settings)), (self.dataset,), state

    def __setstate__(self, state: dict[str, Any]) -> None:
        packed = state.pop(_PACKED_EPISODE, None)
        vars(self).update(state)
        if packed is not None:
            self._unpack_episode(packed)

    def _unpack_episode(self, packed: Any) -> None:
        """Continue the episode that ``_pack_episode`` returned."""

    def _pack_episode(self) -> Any:
        """Return the running episode as a value that can be pickled."""
        raise EnvironmentStateError(
            f"{type(self).__name__} cannot be pickled within an episode: call end_episode() first, "
            "or copy the episode with fork()"
        )
