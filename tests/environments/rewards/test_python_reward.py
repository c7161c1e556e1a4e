"""The Python rewards on constructed states."""

from __future__ import annotations

import pytest

from intercode.core.types import State, Task, TestResult
from intercode.environments.base.rewards import REWARDS
from intercode.environments.python.reward import standard

TASK = Task("t", "q")


def run(passed: bool, output: str | None = "", error: str = "") -> TestResult:
    return TestResult("assert True", passed, output, error)


def test_standard_is_the_share_of_tests_that_passed() -> None:
    agent = State(tests=(run(True), run(False, None, "time-out"), run(True)))
    score = standard(TASK, agent, State())
    assert score.value == pytest.approx(2 / 3)
    assert score.details == {"tests": 3, "failed": {1: "time-out"}}
    assert not score.success
    assert standard(TASK, State(tests=(run(True),)), State()).success


def test_without_tests_it_is_0() -> None:
    assert standard(TASK, State(), State()).value == 0.0


def test_it_is_registered() -> None:
    assert REWARDS.load("python-standard") is standard
