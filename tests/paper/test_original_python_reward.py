"""The Python reward of the authors on constructed states."""

from __future__ import annotations

import pytest

from intercode.core.types import State, Task, TestResult
from intercode.environments.base.rewards import REWARDS
from intercode.paper.python.reward import original

TASK = Task("t", "q")


def run(passed: bool, output: str | None = "", error: str = "") -> TestResult:
    return TestResult("assert True", passed, output, error)


def test_original_counts_results_equal_to_the_golds() -> None:
    error = "Error: name 'root' is not defined"
    agent = State(tests=(run(True), run(False, None, error), run(False, "4"), run(False, None, "")))
    gold = State(tests=(run(True), run(False, None, error), run(False, "5"), run(False, "", "")))
    score = original(TASK, agent, gold)
    assert score.value == 0.5
    assert score.details == {"tests": 4, "raised": [1]}


def test_original_wants_the_gold_on_the_same_tests() -> None:
    with pytest.raises(ValueError, match="argument"):
        original(TASK, State(tests=(run(True),)), State())


def test_without_tests_it_is_0() -> None:
    assert original(TASK, State(), State()).value == 0.0


def test_it_is_registered() -> None:
    assert REWARDS.load("python-original") is original
