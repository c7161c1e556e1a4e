"""The Code starter suite in JavaScript, C and Java. `intercode check` verifies its golds."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from intercode.core.languages import load_language
from intercode.core.types import Task
from intercode.datasets import load


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Task, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INTERCODE_CACHE", str(tmp_path_factory.mktemp("cache")))
        return load("starter", "code").tasks


def test_there_are_twelve_of_each_language_at_least(tasks: tuple[Task, ...]) -> None:
    counts = Counter(t.group for t in tasks)
    assert counts.keys() == {"javascript", "c", "java"} and min(counts.values()) >= 12
    assert len({t.id for t in tasks}) == len({t.query for t in tasks}) == len(tasks)
    for name in counts:
        assert {t.hardness for t in tasks if t.group == name} == {"easy", "medium", "hard"}
        assert load_language(str(name)).title
    assert load("starter:code").programs == ("node", "gcc", "javac")


def test_tests_are_several_stay_hidden_and_differ(tasks: tuple[Task, ...]) -> None:
    for task in tasks:
        tests = task.data["tests"]
        assert len(tests) >= 4, task.id
        given = [json.dumps(test["input"]) for test in tests]
        assert len(set(given)) == len(given), task.id
        assert len({json.dumps(test["output"]) for test in tests}) > 2, task.id
        if "entry" in task.data:
            assert f"{task.data['entry']}(" in task.query, task.id
            assert all(isinstance(test["input"], list) for test in tests)
        else:
            example = task.data["example"]
            assert example in task.query and example not in [t["input"] for t in tests], task.id


def test_expected_outputs_agree_with_values_computed_by_hand(tasks: tuple[Task, ...]) -> None:
    wanted = {
        "javascript/evaluate": (["2*-(3-5)*1.5"], 6),
        "javascript/compare-versions": (["1.0.0-alpha.beta", "1.0.0-alpha.1"], 1),
        "javascript/sheet": (
            [{"A1": "=B1", "B1": "=A1", "C1": "=A1"}],
            {"A1": "#CYCLE", "B1": "#CYCLE", "C1": "#CYCLE"},
        ),
        "c/roman": ("IV IX XL XC CD CM\n", "1443\n"),
        "c/days": ("2000-01-01 1999-12-31\n", "-1\n"),
        "c/stack": ("7 -2 /\n7 -2 %\n", "1\n-3\n"),
        "java/intervals": ("1 2\n2 3\n10 11\n", "1 3\n10 11\ngaps 7\n"),
        "java/knight": ("a1 b2\nh8 g7\nd4 e5\n", "4\n4\n2\n"),
        "java/streak": ("2023-12-31 2024-01-01 2023-01-01\n", "2 2023-12-31\n"),
    }
    found = {t.id: t for t in tasks}
    for name, (given, output) in wanted.items():
        tests = found[f"starter/code/{name}"].data["tests"]
        assert {"input": given, "output": output} in tests, name
