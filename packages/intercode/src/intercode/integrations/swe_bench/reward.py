"""The reward of a SWE-bench task: 1 if every named test passes, else 0."""

from __future__ import annotations

from collections.abc import Sequence

from intercode.core.types import Score, State, Task, TestResult
from intercode.integrations.swe_bench.grading import suspicious_lines
from intercode.integrations.swe_bench.rows import SweBenchPayload

_MAX_TESTS = 20  # failed tests in the details


def standard(task: Task, agent: State, _gold: State) -> Score:
    """Return 1 if all tests of FAIL_TO_PASS and of PASS_TO_PASS pass, else 0.

    The shares of both are parts. The details have the patch, the first tests that failed, what was
    said, and lines of the patch that name parts of the test runner (``suspicious``).
    """
    count = len(SweBenchPayload.of(task).fail_to_pass)
    first, others = agent.tests[:count], agent.tests[count:]
    parts = {"fail_to_pass": _share(first), "pass_to_pass": _share(others)}
    solved = not agent.failed and all(test.passed for test in agent.tests)
    patch = agent.answer or ""
    details = {
        "patch": patch,
        "failed": [f"{t.test}: {t.error}" for t in agent.tests if not t.passed][:_MAX_TESTS],
        "said": agent.output,
        "suspicious": list(suspicious_lines(patch)),
    }
    return Score(float(solved), parts, details)


def _share(tests: Sequence[TestResult]) -> float:
    return sum(test.passed for test in tests) / len(tests) if tests else 1.0
