"""The reward of Python as the authors' code computes it."""

from __future__ import annotations

from intercode.core.types import Score, State, Task


def original(_task: Task, agent: State, gold: State) -> Score:
    """Score the share of tests with the same result as the gold.

    This is how the authors' code at c3e46d8 counts: it compares the printed text and the error
    text, so a test on which agent and gold fail alike counts as passed. The share is 0 if no test
    was run. ``raised`` in the details has the positions of the tests that raised an error on the
    agent's side.
    """
    pairs = list(zip(agent.tests, gold.tests, strict=True))
    same = [(a.output, a.error) == (g.output, g.error) for a, g in pairs]
    value = sum(same) / len(same) if same else 0.0
    raised = [n for n, (a, _) in enumerate(pairs) if a.error]
    return Score(value, {"tests": value}, {"tests": len(same), "raised": raised})
