"""The tree of tokens: what a trace and the search for its faults share."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from intercode.results.tokens.calls import TokenCall

Role = Literal["prompt", "reply"]


@dataclass(frozen=True, slots=True)
class TokenNode:
    """A stretch of tokens: a part of a prompt, or the reply of one call.

    ``parent`` is the index of the node before it, None at a root, and ``begins`` the position of
    its first id in every branch through it. ``mask`` is 1 for what the model wrote. ``logprobs``
    has one item per id, 0.0 where the mask is 0, and is None if they are unknown. ``call`` is the
    index of the call whose reply it is, and ``finish`` why that ended.
    """

    parent: int | None
    role: Role
    begins: int
    ids: tuple[int, ...]
    mask: tuple[int, ...]
    logprobs: tuple[float, ...] | None
    finish: str = ""
    call: int | None = None

    @property
    def ends(self) -> int:
        """The position after its last id."""
        return self.begins + len(self.ids)


@dataclass(frozen=True, slots=True)
class TokenTree:
    """The fields of a ``TokenTrace``."""

    nodes: tuple[TokenNode, ...]
    calls: tuple[TokenCall, ...]
    reply_nodes: Mapping[tuple[str, int, int], int]
    parents: Mapping[str, tuple[str, int]]
    """For each fork the id of its parent, which is in the trace, and how many turns they share."""
    episodes: Collection[str] = ()
    """The ids of all episodes, also of those without a call."""


def continues(prompt: Sequence[Any], call: TokenCall) -> bool:
    """Return whether a prompt begins with the prompt and the reply of a call."""
    middle = len(call.prompt_ids)
    end = middle + len(call.ids)
    return (
        len(prompt) >= end and prompt[middle:end] == call.ids and prompt[:middle] == call.prompt_ids
    )


def shared_length(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Return how many ids two sequences have in common at their beginnings."""
    return next(
        (n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
