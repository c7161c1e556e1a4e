"""Makes environments again from their dataset and settings, also in other processes.

A pickle of a running episode holds its snapshot, in environments that can store one.
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
PACKED_EPISODE = "packed_episode"
"""The key of the running episode in a pickle."""


class Copyable:
    """The part of an environment that makes others like it."""

    dataset: Dataset
    settings: dict[str, Any]
    _running: bool

    def new_like(self) -> Self:
        """Return an environment with the same dataset and settings, before its first ``reset``."""
        return type(self)(self.dataset, **self.settings)  # type: ignore[call-arg]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle dataset, settings, random state and the snapshot of a running episode.

        Raises EnvironmentStateError within an episode whose snapshot cannot be stored.
        """
        state = {name: v for name, v in vars(self).items() if name in _STATE_OF_GYMNASIUM}
        if self._running:
            state[PACKED_EPISODE] = self._pack_episode()
        return partial(type(self), **self.settings), (self.dataset,), state

    def _pack_episode(self) -> Any:
        """Return the running episode as a value that can be pickled, for ``__setstate__``."""
        raise EnvironmentStateError(
            f"{type(self).__name__} cannot be pickled within an episode: call end_episode() first, "
            "or copy the episode with fork()"
        )
