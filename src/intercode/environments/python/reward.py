"""The paper's Python reward, the share of tests that pass, and what the authors' code makes of it.

Paper (arXiv 2306.14898, section 3.2): the share of a task's tests that the submitted function
passes.
"""

from __future__ import annotations

from intercode.core.types import Score, State, Task


def standard(_task: Task, agent: State, _gold: State) -> Score:
    """The share of tests that passed; 0 where none was run."""
    passed = [run.passed for run in agent.tests]
    value = sum(passed) / len(passed) if passed else 0.0
    failed = {n: run.error for n, run in enumerate(agent.tests) if not run.passed}
    return Score(value, {"tests": value}, {"tests": len(passed), "failed": failed})


def original(_task: Task, agent: State, gold: State) -> Score:
    """The share of tests that did the same as with the gold in place, as the authors' code at
    c3e46d8 counts it: what was printed and the error text are compared, so that a test on which
    both fail alike counts as passed. 0 where no test was run.

    ``raised`` in the details holds the positions of the tests with an error on the agent's side.
    """
    both = list(zip(agent.tests, gold.tests, strict=True))
    same = [(a.output, a.error) == (g.output, g.error) for a, g in both]
    value = sum(same) / len(same) if same else 0.0
    raised = [n for n, (a, _) in enumerate(both) if a.error]
    return Score(value, {"tests": value}, {"tests": len(same), "raised": raised})
