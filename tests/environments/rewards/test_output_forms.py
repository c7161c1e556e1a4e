"""The forms in which an answer of Bash may say what the gold says, and those that only look so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from intercode.core.types import State, Task
from intercode.environments.base.progress.partial import OTHER_FORM, WRONG_MAX
from intercode.environments.bash.outputs import COMPARISONS
from intercode.environments.bash.reward import standard

TREE = "/d\n|-- a\n|   |-- b\n|   `-- c\n`-- e\n\n2 directories, 3 files\n"
SIZES = "12 /d/a\n7 /d/b\n"
ACCEPTED = [
    ("count", "4.18182", "4.18"),
    ("count", "4.18182", "4.1818"),
    ("count", "4.18182", "4.181818181818"),
    ("count", "4.18182", "4.181"),
    ("count", "4.18182", "Average: 4.18182"),
    ("count", "5", "There are 5 files."),
    ("count", "5", "five"),
    ("count", "0", "zero files"),
    ("count", "3", "3 files older than 2 days"),
    ("count", "2", "2 files older than 2 days"),
    ("mentions count", "1", "removed '/d/a1'\n1"),
    ("paths", "/d/a\n/d/b", "d/b\n./d/a"),
    ("paths", "/d/a\n/d/b", "'/d/a'\n/d/b/"),
    ("matches", "/d/a:x y\n/d/b:z", "/d/a:3:x y\n/d/b:14:z"),
    ("words", "/d/a f32a3a97\n/d/b 638afeb2", "/d/a: f32a3a97\n/d/b: 638afeb2"),
    ("words", "a 1\nb 2", "name=a size=1\nname=b size=2"),
    ("fields", SIZES, "/d/a: 12\n/d/b: 7"),
    ("fields", SIZES, "size=12 path=/d/a\nsize=7 path=/d/b"),
    ("fields", "-rw-r--r-- me us /d/a", "'/d/a' -rw-r--r-- me:us"),
    ("order fields", SIZES, "/d/a 12\n/d/b 7"),
    ("tree", TREE, "d/\n  a/\n    b\n    c\n  e\n"),
    ("tree", TREE, "d\n├── a\n│   ├── b\n│   └── c\n└── e\n"),
    ("tree", TREE, "|   d\n|   |   a\n|   |   |   b\n|   |   |   c\n|   |   e\n"),
]
REFUSED = [
    ("count", "4.18182", "4"),
    ("count", "4.18182", "4.19"),
    ("count", "4.18182", "4.2"),
    ("count", "4.18", "4.1849"),
    ("count", "5", "0 1 2 3 4 5 6 7 8 9"),
    ("count", "5", "5 of 6"),
    ("count", "5", "file5"),
    ("count", "5", "done\n5"),
    ("mentions count", "1", "total 0\ndrwxr-xr-x 1 root root 60 Nov 28 10:39 ."),
    ("mentions count", "1", "0 1 2 3 4 5 6 7 8 9"),
    ("mentions count", "1", "removed"),
    ("paths", "/d/a\n/d/b", "/d/a"),
    ("paths", "/d/a\n/d/b", "a\nb"),
    ("matches", "/d/a:x y", "/d/a:3:x"),
    ("words", "/d/a", "grep: /d/a: Permission denied"),
    ("fields", "7 12 /d/a", "12 7 /d/a"),
    ("fields", "old;new", "new;old"),
    ("fields", SIZES, "12 /d/b\n7 /d/a"),
    ("fields", "me us /d/a", "me /d/a"),
    ("order fields", SIZES, "/d/b 7\n/d/a 12"),
    ("tree", TREE, "/d\n/d/a\n/d/a/b\n/d/a/c\n/d/e"),
    ("tree", TREE, "/d:\na\ne\n\n/d/a:\nb\nc"),
    ("tree", TREE, "d\n  a\n  b\n  c\n  e\n"),
]


def score(compare: str, gold: str, printed: str) -> float:
    task = Task("t", "Which files are older than 2 days?", data={"compare": compare})
    return standard(task, State(printed), State(gold)).value


@pytest.mark.parametrize(("compare", "gold", "printed"), ACCEPTED)
def test_what_a_form_accepts(compare: str, gold: str, printed: str) -> None:
    assert score(compare, gold, printed) == 1.0


@pytest.mark.parametrize(("compare", "gold", "printed"), REFUSED)
def test_what_a_form_refuses(compare: str, gold: str, printed: str) -> None:
    assert score(compare, gold, printed) <= WRONG_MAX


def test_where_the_order_of_words_is_asked_for_another_one_is_another_form() -> None:
    assert score("words", "/d/a f32a3a97", "f32a3a97 /d/a") == OTHER_FORM


@pytest.mark.parametrize("compare", COMPARISONS)
def test_every_comparison_accepts_the_gold_itself(compare: str) -> None:
    for gold in ("5\n", SIZES, TREE, "/d/a:x\n", "nothing in particular\n"):
        assert score(compare, gold, gold) == 1.0


@pytest.mark.parametrize(("compare", "gold", "printed"), ACCEPTED)
def test_without_the_form_it_earns_more_than_a_wrong_answer(
    compare: str, gold: str, printed: str
) -> None:
    if compare not in ("matches", "mentions count"):
        assert score("", gold, printed) in (OTHER_FORM, 1.0)


def test_paths_are_relative_to_the_directory_of_the_shell() -> None:
    task = Task("t", "q", data={"compare": "paths"})
    there = State("./a\n./b/", cwd="/d")
    assert standard(task, there, State("/d/b\n/d/a")).success
    assert not standard(task, replace(there, cwd="/e"), State("/d/b\n/d/a")).success
