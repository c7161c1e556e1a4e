"""Python in the `original` profile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from intercode.core.errors import UsageError
from intercode.core.types import Dataset
from intercode.environments.python.env import PythonEnv
from intercode.paper.python.profile import score_and_load_gold
from support.python_tasks import ADD, ALL, task

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def theirs() -> Iterator[PythonEnv]:
    with PythonEnv(Dataset("own", "python", (ADD,)), profile="original") as opened:
        yield opened


@pytest.mark.parametrize(
    ("action", "observation"),
    [
        ("def add(a, b): return a", "{'output': '', 'error': ''}"),
        ("1 + 1", "{'output': '2\\n', 'error': ''}"),
        ("x = 5", "{'output': '', 'error': ''}"),
        ("print('é')", "{'output': 'é\\n', 'error': ''}"),
        ("import math", "{'output': '', 'error': ''}"),
        ("from math import pi", "{'error': 'Error: invalid syntax (<string>, line 1)'}"),
        ("assert 1 == 2", "{'error': 'Error: '}"),
        ("nothing", "{'error': \"Error: name 'nothing' is not defined\"}"),
        ("def f(:", "{'error': 'Error: invalid syntax (<string>, line 1)'}"),
        ("x ==", "Error executing action: invalid syntax (<unknown>, line 1)"),
    ],
)
def test_original_observations(theirs: PythonEnv, action: str, observation: str) -> None:
    theirs.reset(options={"task": 0})
    found, _, _, _, info = theirs.step(action)
    assert found.replace(". Perhaps you forgot a comma?", "") == observation
    assert info["valid"] is ("'error': 'Error" in observation or "'error': \"Error" in observation)


def test_the_authors_counting_rewards_equal_errors_and_loads_the_gold(theirs: PythonEnv) -> None:
    theirs.reset(options={"task": 0})
    theirs.step("def plus(a, b): return 3")
    assert theirs.score() == theirs.score()
    assert score_and_load_gold(theirs).value == 0.5
    assert theirs.step("plus(1, 1)")[0] == "{'error': \"Error: name 'plus' is not defined\"}"
    assert theirs.step("add(2, 2)")[0] == "{'output': '4\\n', 'error': ''}"
    failing = task("f", "def f(x): return 1", "assert f(1) == 2", "assert f(2) == 1", entry="f")
    with PythonEnv(Dataset("own", "python", (failing,)), profile="original") as env:
        env.reset(options={"task": 0})
        env.step("def f(x): return 0")
        assert env.score().value == 0.5


def test_scoring_with_the_gold_loaded_needs_the_original_profile() -> None:
    with PythonEnv(ALL) as env:
        env.reset(options={"task": 0})
        with pytest.raises(UsageError, match="original"):
            score_and_load_gold(env)
