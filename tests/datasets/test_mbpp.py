"""MBPP: its splits, the entry points of its tasks, the tests that they show, its sanitized part."""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.core.errors import DataError, UnknownNameError, UsageError
from intercode.datasets import load
from intercode.datasets.hidden_tests import find_entry_point
from intercode.datasets.pins import load_pins
from intercode.datasets.python import mbpp
from intercode.datasets.python.mbpp import UNCLEAR_TASKS, choose_tests

ROW = {
    "query": "Double it.",
    "gold": "def half(n):\r\n    return n / 2\r\ndef double(n, by=2):\r\n    return n * by",
    "tests": ["assert double(2) == 4"],
    "task_id": 1,
    "test_setup_code": "",
}


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write rows of the test in the layout of the authors' repository."""

    def write(*rows: object) -> None:
        folder = tmp_path / "data" / "python" / "mbpp"
        folder.mkdir(parents=True)
        (folder / "ic_mbpp.json").write_text(json.dumps(rows))
        monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("INTERCODE_DATA", str(tmp_path))

    return write


@pytest.mark.slow
def test_the_whole_and_its_splits(data: Path) -> None:
    whole = load("mbpp")
    assert [t.id for t in whole.tasks] == [f"mbpp/{n}" for n in range(1, 975)]
    assert (whole.environment, {t.data["mode"] for t in whole.tasks}) == ("python", {"assert"})
    parts = {name: load(f"mbpp:{name}").tasks for name in mbpp.SPLITS}
    ids = {name: (tasks[0].id, tasks[-1].id, len(tasks)) for name, tasks in parts.items()}
    assert ids == {
        "prompt": ("mbpp/1", "mbpp/10", 10),
        "test": ("mbpp/11", "mbpp/510", 500),
        "validation": ("mbpp/511", "mbpp/600", 90),
        "train": ("mbpp/601", "mbpp/974", 374),
    }
    assert [t for tasks in parts.values() for t in tasks] == list(whole.tasks)
    assert all(t.group == name for name, tasks in parts.items() for t in tasks)
    published = load("mbpp:original")
    assert [t.query for t in published.tasks] == [t.query for t in whole.tasks]
    assert published.hash != whole.hash  # the agent sees other notes
    assert not any("call_form" in t.data for t in published.tasks)
    assert [t.id for t in load("mbpp:original-prompt").tasks] == [t.id for t in parts["prompt"]]
    with pytest.raises(UnknownNameError, match="did you mean 'train'"):
        load("mbpp:trian")


def test_every_test_calls_the_entry_and_no_text_has_carriage_returns(data: Path) -> None:
    tasks = load("mbpp").tasks
    for task in tasks:
        called = re.compile(rf"\b{task.data['entry']}\s*\(")
        assert all(called.search(test) for test in task.data["tests"]), task.id
        assert "\r" not in f"{task.query}{task.gold}{task.data['setup']}", task.id
        assert task.data["notes"].startswith(f"Define {task.data['entry']}("), task.id
    helpers = [t.id for t in tasks if f"def {t.data['entry']}" not in str(t.gold).split("(")[0]]
    # in these golds the first definition is a helper, which the tests do not call
    assert len(helpers) > 30
    assert Counter(bool(t.data["setup"]) for t in tasks)[True] == 2


def test_the_prompt_says_what_the_tests_need(data: Path) -> None:
    tasks = {t.data["task_id"]: t for t in load("mbpp").tasks}
    notes = {number: task.data["notes"] for number, task in tasks.items()}
    assert tasks[601].data["entry"] == "max_chain_length"
    assert "and class Pair. Its tests have this form:\nassert max_chain_length([Pair(" in notes[601]
    assert "and class Node. Its tests have this form:\nroot = Node(1)" in notes[927]
    assert notes[17] == "Define square_perimeter(a)."
    for number, shown in ((31, 1), (149, 1), (247, 1), (449, 2), (709, 1)):
        first, *tests = notes[number].splitlines()
        assert first.endswith("Its tests have this form:") and len(tests) == shown
        assert set(tests) < {test.strip() for test in tasks[number].data["tests"]}
    assert {n for n, task in tasks.items() if "call_form" in task.data} == UNCLEAR_TASKS


def test_one_test_of_each_form_is_shown() -> None:
    found, missed, again = (f"assert f({n}) == '{r}'" for n, r in enumerate("ynn"))
    assert choose_tests([found, missed, again]) == [found, missed]
    assert choose_tests(["assert f('a') == 'b'", "assert f('c') == 'd'"]) == [
        "assert f('a') == 'b'"
    ]
    numbers = ["assert f(1) == 2", "assert f(2) == -1", "assert f(3) == 5", "assert f(4) == None"]
    assert choose_tests(numbers) == [numbers[0], numbers[1], numbers[3]]
    assert len(choose_tests(["assert f(1) == g(2)", "assert f(3), 4", "assert f(2) == [1]"])) == 2


def test_the_sanitized_part_is_read_as_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (pinned,) = load_pins()["mbpp-sanitized"].files
    rows = [
        {
            "source_file": "a.ipynb",
            "task_id": number,
            "prompt": "Halve it.",
            "code": "import math\ndef half(n):\n    return n / 2",
            "test_imports": ["import math"],
            "test_list": ["assert math.isclose(half(3), 1.5)", "assert half(2) == 1"],
        }
        for number in (2, 11)
    ]
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("INTERCODE_DATA", str(tmp_path))
    with pytest.raises(UsageError, match="intercode list --fetch mbpp-sanitized"):
        load("mbpp:sanitized")
    path = tmp_path / pinned.path
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(rows))
    first, second = load("mbpp:sanitized").tasks
    assert (first.id, first.query, first.group) == ("mbpp-sanitized/2", "Halve it.", "prompt")
    assert (first.data["entry"], first.data["setup"]) == ("half", "import math")
    assert first.data["tests"] == tuple(rows[0]["test_list"])
    assert (second.group, second.data["notes"]) == ("test", "Define half(n).")
    assert load("mbpp:sanitized-test").tasks == (second,)
    for change, words in [({"test_imports": 3}, "'test_setup_code'"), ({"prompt": 3}, "'query'")]:
        path.write_text(json.dumps([{**rows[0], **change}]))
        with pytest.raises(DataError, match=f"row 0: {words} must be a text"):
            load("mbpp:sanitized")


def test_a_row_becomes_a_task(written: Any) -> None:
    written(ROW)
    (task,) = load("mbpp").tasks
    assert (task.id, task.query, task.group) == ("mbpp/1", "Double it.", "prompt")
    assert task.gold == "def half(n):\n    return n / 2\ndef double(n, by=2):\n    return n * by"
    assert task.data["notes"] == "Define double(n, by=2)."
    assert (task.data["entry"], task.data["tests"]) == ("double", ("assert double(2) == 4",))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tests": []}, r"row 0: 'tests' is empty"),
        ({"tests": "assert x"}, r"row 0: 'tests' must be a list of texts"),
        ({"task_id": "1"}, r"row 0: expected an object with a whole number"),
        ({"gold": None}, r"row 0: 'gold' must be a text, not None"),
        ({"gold": "def f(:"}, r"row 0: not valid Python"),
        ({"tests": ["assert other(1)"]}, r"no test calls what the gold defines: half, double"),
    ],
)
def test_a_broken_row_is_named(written: Any, change: dict[str, object], words: str) -> None:
    written({**ROW, **change})
    with pytest.raises(DataError, match=words):
        load("mbpp")


def test_missing_data_are_an_error_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("INTERCODE_DATA", str(tmp_path))
    with pytest.raises(UsageError, match="intercode list --fetch mbpp"):
        load("mbpp")
    monkeypatch.setenv("INTERCODE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="not a directory"):
        load("mbpp")


def test_the_entry_is_the_outermost_function() -> None:
    gold = "class P: ...\ndef inner(x): ...\ndef outer(x): ...\nalias = outer"
    assert find_entry_point(gold, ["assert outer(inner(P(1))) == 2"], "", "x").name == "outer"
    found = find_entry_point(gold, ["assert alias(P(3))"], "root = inner(P(1))", "x")
    assert (found.name, found.signatures) == ("alias", ("alias", "class P", "inner(x)"))
    assert find_entry_point(gold, ["assert drive(1)"], "def drive(x): return P(x)", "x").name == "P"


LISTING = json.loads(
    resources.files("intercode.datasets").joinpath("python/mbpp_verified.json").read_text()
)
LUCKY = {
    69: "def is_sublist(l, s): return ''.join(map(str, s)) in ''.join(map(str, l))",
    204: "def count(s, c): return s.lower().count(c.lower())",
    818: "def lower_ctr(s): return len(s) - sum(c.isupper() for c in s)",
    37: "def sort_mixed_list(l): return [1, 10, 12, 19, 'blue', 'green', 'green', 'red', 'white']",
    203: "def hamming_Distance(a, b): return 2",
    339: "def find_Divisor(a, b): return 2",
    667: "def Check_Vow(s, vowels): return 2",
    674: "def remove_duplicate(s): return 'Python Exercises Practice Solution'",
}
"""Wrong programs that pass the tests of the dataset."""


def test_the_verified_part_is_listed_with_reasons() -> None:
    include, exclude = LISTING["include"], LISTING["exclude"]
    assert {*include, *exclude} == {f"mbpp/{n}" for n in range(1, 975)}
    assert len(exclude) <= 0.03 * 974
    assert all(re.fullmatch(r"(wrong-gold|ambiguous): \S.+", why) for why in exclude.values())
    entries = {name: entry for name, entry in include.items() if entry}
    assert set(entries) == {f"mbpp/{n}" for n in LUCKY}
    for entry in entries.values():
        assert bool(entry.get("repair")) == ("gold" in entry) and entry["tests_reason"]


def test_the_verified_part_has_further_tests(data: Path) -> None:
    dataset, whole = load("mbpp:verified"), {task.id: task for task in load("mbpp").tasks}
    assert dataset.hash == LISTING["hash"]
    assert len(load("mbpp:verified-test")) == sum(
        11 <= int(n.split("/")[1]) <= 510 for n in LISTING["include"]
    )
    for task in dataset.tasks:
        more = tuple(LISTING["include"][task.id].get("tests", ()))
        assert task.data["tests"] == (*whole[task.id].data["tests"], *more)
        assert task.data["notes"] == whole[task.id].data["notes"], "no further test is shown"


@pytest.mark.sandbox
def test_programs_that_were_right_by_luck_fail_in_the_verified_part(data: Path) -> None:
    for name, paid in (("mbpp", True), ("mbpp:verified", False)):
        with intercode.make("python", load(name), image="host") as env:
            for number, code in LUCKY.items():
                env.reset(options={"task": f"mbpp/{number}"})
                env.step(code)
                assert env.score().success == paid, (name, number)
                if not paid:
                    env.step(env.task.golds[0])
                    assert env.score().success, number
