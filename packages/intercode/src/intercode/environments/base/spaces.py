"""A Gymnasium space of Unicode texts up to a length."""

from __future__ import annotations

import string
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Text
from gymnasium.spaces.utils import flatten, flatten_space, unflatten
from gymnasium.vector.utils import create_shared_memory
from numpy.typing import NDArray

from intercode.core.errors import UsageError

_PADDING = 0x110000  # the first number that is no character
_SAMPLED = string.ascii_letters + string.digits
_SAMPLE_LENGTH = 16


class FreeText(Text):
    """The space of strings of at most ``max_length`` characters.

    Gymnasium's Text checks each character against a set, which takes time to build. This space
    checks type and length only, and has a set of one character.
    """

    def __init__(self, max_length: int) -> None:
        super().__init__(max_length=max_length, min_length=0, charset=" ")

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and len(x) <= self.max_length

    def sample(self, mask: Any = None, probability: Any = None) -> str:  # noqa: ARG002
        """Return a random word after ``echo``, which is harmless as an action."""
        length = min(self.max_length, _SAMPLE_LENGTH)
        word = "".join(self.np_random.choice(list(_SAMPLED), size=length).tolist())
        return f"echo {word}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FreeText) and other.max_length == self.max_length

    def __hash__(self) -> int:
        return hash(("FreeText", self.max_length))

    def __repr__(self) -> str:
        return f"FreeText({self.max_length})"


# Gymnasium finds these functions by the type of the space. It flattens its own Text to positions in
# a set of characters; they flatten a FreeText to code points.
@flatten_space.register
def _flatten_space(space: FreeText) -> Box:
    return Box(0, _PADDING, (space.max_length,), np.int32)


@flatten.register
def _flatten(space: FreeText, x: str) -> NDArray[np.int32]:  # type: ignore[misc]
    padded = np.full(space.max_length, _PADDING, np.int32)
    padded[: len(x)] = np.frombuffer(x.encode("utf-32-le", "surrogatepass"), "<i4")
    return padded


@unflatten.register
def _unflatten(space: FreeText, x: NDArray[np.int32]) -> str:  # type: ignore[misc]  # noqa: ARG001
    return x[x < _PADDING].astype("<i4").tobytes().decode("utf-32-le", "surrogatepass")


@create_shared_memory.register
def _create_shared_memory(space: FreeText, n: int = 1, ctx: Any = None) -> Any:  # noqa: ARG001
    """Refuse: AsyncVectorEnv reads its shared memory once, and would return texts of that time."""
    raise UsageError(
        "Gymnasium's AsyncVectorEnv cannot return texts through shared memory: pass "
        "shared_memory=False, to make_vec as vector_kwargs={'shared_memory': False}"
    )
