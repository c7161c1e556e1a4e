"""A Gymnasium space of Unicode texts up to a length."""

from __future__ import annotations

import string
from typing import Any

from gymnasium.spaces import Text

_SAMPLED = string.ascii_letters + string.digits + " "
_SAMPLE_LENGTH = 16


class FreeText(Text):
    """The space of strings of at most ``max_length`` characters.

    Gymnasium's Text checks each character against a set. This space checks type and length only.
    """

    def __init__(self, max_length: int) -> None:
        super().__init__(max_length=max_length, min_length=0, charset=_SAMPLED)

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and len(x) <= self.max_length

    def sample(self, mask: Any = None, probability: Any = None) -> str:  # noqa: ARG002
        """Return a random word after ``echo``, which is harmless as an action."""
        length = min(self.max_length, _SAMPLE_LENGTH)
        word = "".join(self.np_random.choice(list(_SAMPLED[:-1]), size=length).tolist())
        return f"echo {word}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FreeText) and other.max_length == self.max_length

    def __hash__(self) -> int:
        return hash(("FreeText", self.max_length))

    def __repr__(self) -> str:
        return f"FreeText({self.max_length})"
