"""The reward of tasks that look at the end state by themselves: how much of it is as the gold's."""

from __future__ import annotations

from collections import Counter

from intercode.core.types import Score, State, Task


def probe_similarity(_task: Task, agent: State, gold: State) -> Score:
    """The share of the lines that the look printed of either state and that it printed of both.

    Lines count as often as they are there, in any order: Σ min / Σ max, and 1 where nothing was
    printed of either.
    """
    have, want = (Counter(state.probe_output.splitlines()) for state in (agent, gold))
    whole = (have | want).total()
    value = (have & want).total() / whole if whole else 1.0
    missed, extra = sorted((want - have).elements()), sorted((have - want).elements())
    return Score(value, {"probe": value}, {"missed": missed, "extra": extra})
