"""Arguments of a wrong type are refused with an error that names the value and the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode import datasets
from intercode.core.errors import DataError, InterCodeError, UsageError
from intercode.core.types import Dataset, Task

_TASKS = Dataset("mine", "bash", (Task("mine/one", "Print one.", gold="echo one"),))
_FLAG_HINT = "; an option of a command takes true or false"
_WRONG = [
    ("bash", "dataset", 5, "a dataset is a Dataset, rows with"),
    ("bash", "dataset", [{"query": "a"}], "rows, row 0: no 'gold'"),
    ("bash", "backend", True, "backend is a text, not True"),
    ("bash", "backend", [], r"backend is a text, not \[\]"),
    ("bash", "image", 5, "image is a text or None, not 5"),
    ("bash", "profile", None, "profile is a text, not None"),
    ("bash", "network", 5, "network is a text, not 5"),
    ("bash", "render_mode", ["ansi"], r"unknown render mode \['ansi'\]; .*known: None, ansi"),
    ("bash", "reward_mode", 5, "unknown reward mode 5"),
    ("bash", "session", None, "unknown session None"),
    ("bash", "reward", "a\0b.py:f", "cannot read .*embedded null byte"),
    ("bash", "session", object, "unknown session"),
    ("bash", "policy", 5, "a policy is"),
    ("bash", "policy", ["command:rm"], "a policy is"),
    ("bash", "deterministic", "yes", "deterministic is True, False"),
    ("bash", "deterministic", 1, "deterministic is True, False"),
    ("bash", "separate_stderr", "yes", "separate_stderr is True or False, not 'yes'" + _FLAG_HINT),
    ("bash", "use_gold_cache", 0, "use_gold_cache is True or False, not 0$"),
    ("bash", "record_diffs", "false", "record_diffs is True or False, not 'false'" + _FLAG_HINT),
    ("bash", "recycle", None, "recycle is True or False, not None$"),
    ("bash", "hashes", "x", "hashes is True, False or None, not 'x'" + _FLAG_HINT),
    ("bash", "extra_layers", 5, "extra_layers is a function or None, not 5"),
    ("bash", "max_turns", "3", "max_turns is a whole number or None, not '3'"),
    ("bash", "max_turns", True, "max_turns is a whole number or None, not True"),
    ("bash", "timeout", True, "timeout is a number, not True"),
    ("bash", "timeout", float("nan"), "timeout has to be more than 0 seconds, .* not nan"),
    ("sql", "engine", 5, "engine is a text, not 5"),
    ("sql", "engine", [], r"engine is a text, not \[\]"),
    ("sql", "engine", "oracle", "unknown engine 'oracle'"),
    ("sql", "dsn", 5, "dsn is a text or None, not 5"),
    ("sql", "hashes", 1, "hashes is True, False or None, not 1$"),
    ("python", "interpreter", 5, "interpreter is a text, not 5"),
    ("python", "test_timeout", "x", "test_timeout is a number or None, not 'x'"),
    ("python", "test_timeout", -1, "test_timeout has to be more than 0 seconds, .* not -1"),
    ("python", "test_timeout", 0, "test_timeout has to be more than 0 seconds, .* not 0"),
    ("code", "test_timeout", 1e-9, "test_timeout = 1e-09 s is too short"),
    ("code", "language", 5, "language is a text or None, not 5"),
    ("code", "language", "zz", "unknown language 'zz'; known: c, "),
    ("harbor", "build", "no", "build is True or False, not 'no'" + _FLAG_HINT),
    ("swe-bench", "test_timeout", "x", "test_timeout is a number, not 'x'"),
    ("swe-bench", "test_timeout", -1, "test_timeout has to be more than 0 seconds, .* not -1"),
]


@pytest.mark.parametrize(("environment", "name", "value", "message"), _WRONG)
def test_a_setting_of_a_wrong_type_is_named_when_the_environment_is_made(
    environment: str, name: str, value: Any, message: str
) -> None:
    with pytest.raises(InterCodeError, match=message) as caught:
        intercode.make(environment, **{name: value})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [None, 5, b"starter", ["starter"], {}, [{}, 1]])
def test_load_names_a_value_that_is_no_dataset(value: Any) -> None:
    with pytest.raises(UsageError, match=r"a Dataset, rows .* such as nl2bash:fs_1 or .*; not "):
        datasets.load(value)


class Frame:
    """Has the rows of a DataFrame of pandas, in which an empty cell is not a number."""

    def to_dict(self, orient: str) -> list[dict[str, Any]]:
        assert orient == "records"
        return [
            {"query": "q", "gold": "ls", "group": "a"},
            {"query": "r", "gold": "pwd", "group": float("nan")},
        ]

    iterrows = to_dict


def test_load_takes_a_dataset_rows_and_a_frame() -> None:
    assert datasets.load(_TASKS) is _TASKS
    rows = [{"query": "q", "gold": "ls", "group": "a"}, {"query": "r", "gold": "pwd"}]
    for loaded in (datasets.load(rows), datasets.load(iter(rows)), datasets.load(Frame())):  # type: ignore[arg-type]
        assert [(t.id, t.gold, t.group) for t in loaded.tasks] == [
            ("rows/0", "ls", "a"),
            ("rows/1", "pwd", None),
        ]
        assert (loaded.name, loaded.environment) == ("rows", "bash")


def test_load_takes_a_path(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"query": "q", "gold": "ls"}\n')
    assert datasets.load(file) == datasets.load(str(file))


def test_a_table_with_two_columns_of_one_name_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("query,gold,,,query\nthe first,ls,,,the second\n")
    with pytest.raises(DataError, match=r"rows\.csv, line 1: two columns are called 'query'"):
        datasets.load(file)
    file.write_text("query,gold,,\nthe first,ls,,\n")
    assert datasets.load(file).tasks[0].query == "the first"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("\ud800.jsonl", "cannot be a path"),
        ("a\0.csv", "cannot be a path"),
        ("\ud800", "unknown dataset"),
        ("a\0b/c", "no such file or directory"),
        ("x" * 5000, "unknown dataset"),
        ("x" * 5000 + ".jsonl", "File name too long"),
        ("./" + "x" * 5000, "no such file or directory"),
        ("harbor:" + "x" * 5000, "there is no directory"),
    ],
    ids=map(str, range(8)),
)
def test_a_name_that_cannot_be_a_path_is_refused_in_one_line(name: str, message: str) -> None:
    with pytest.raises(InterCodeError, match=message) as caught:
        datasets.load(name)
    assert "\n" not in str(caught.value)


@pytest.mark.sandbox
def test_methods_of_an_environment_refuse_other_values() -> None:
    with intercode.make("bash", dataset=_TASKS) as env:
        with pytest.raises(UsageError, match="options are a mapping"):
            env.reset(options=5)  # type: ignore[arg-type]
        env.reset()
        for value in (None, 5, "x", object()):
            with pytest.raises(UsageError, match=r"restore takes what snapshot\(\) returned"):
                env.restore(value)  # type: ignore[arg-type]
        for number in ("2", None, 1.5, 0, True):
            with pytest.raises(UsageError, match="fork takes a number of at least 1"):
                env.fork(number)  # type: ignore[arg-type]
        assert env.step("echo goes on")[0] == "goes on\n"


@pytest.mark.sandbox
def test_a_sandbox_refuses_other_values() -> None:
    for settings in ({"backend": 5}, {"files": 5}, {"files": {"/a": None}}):
        with pytest.raises(UsageError):
            intercode.Sandbox("host", **settings)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="an image is a text"):
        intercode.Sandbox(5)  # type: ignore[arg-type]
    with intercode.Sandbox("host") as sandbox:
        for content in (5, None, ["x"]):
            with pytest.raises(UsageError, match="the content of /tmp/x is text or bytes"):
                sandbox.write("/tmp/x", content)  # type: ignore[arg-type]
