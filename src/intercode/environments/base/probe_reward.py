"""The reward of tasks with a probe: how much of its output is the same as for the gold."""

from __future__ import annotations

from collections import Counter

from intercode.core.types import Score, State, Task


def probe_similarity(_task: Task, agent: State, gold: State) -> Score:
    """Return the share of the printed lines that both states have in common.

    The lines are compared as multisets, in any order: Σ min / Σ max of their counts. The score is 1
    if the probe printed nothing for both states. The details list ``missed`` and ``extra`` lines.
    """
    printed, expected = (Counter(state.probe_output.splitlines()) for state in (agent, gold))
    total = (printed | expected).total()
    value = (printed & expected).total() / total if total else 1.0
    missed, extra = sorted((expected - printed).elements()), sorted((printed - expected).elements())
    return Score(value, {"probe": value}, {"missed": missed, "extra": extra})
