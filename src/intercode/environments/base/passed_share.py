"""The reward of environments with hidden tests: the share of the tests that passed."""

from __future__ import annotations

from intercode.core.types import Score, State, Task


def share_of_passed_tests(_task: Task, agent: State, _gold: State) -> Score:
    """Return the share of the hidden tests that passed, or 0 if no test was run."""
    passed = [run.passed for run in agent.tests]
    value = sum(passed) / len(passed) if passed else 0.0
    failed = {n: run.error for n, run in enumerate(agent.tests) if not run.passed}
    return Score(value, {"tests": value}, {"tests": len(passed), "failed": failed})
