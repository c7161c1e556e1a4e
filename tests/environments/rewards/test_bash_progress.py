"""Partial credit of Bash in real sandboxes: golds, their steps, and what people do wrong."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import pytest

import intercode
from intercode.core.types import Dataset, Task
from intercode.datasets import load
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.progress.partial import OTHER_FORM, WRONG_MAX
from support.progress import check_steps

pytestmark = pytest.mark.sandbox

SETUP = """mkdir -p /work/src /work/old/deep /work/logs && cd /work
printf 'alpha\\nbeta\\ngamma\\ndelta\\nepsilon\\n' > notes.txt
printf 'port=1\\nhost=a\\ndebug=no\\nlevel=2\\n' > app.conf
for n in 1 2 3 4; do printf 'line %s\\nmore of %s\\n' $n $n > src/f$n.txt; done
for n in 1 2 3; do echo "x $n" > old/o$n.tmp; done; echo keep > old/deep/keep.md
for n in a b c; do printf 'e %s\\nw\\n' $n > logs/$n.log; done; chmod 644 logs/*.log
"""


class Case(NamedTuple):
    """A gold by its steps, and mutants of it: reversed, and destructive."""

    steps: tuple[str, ...]
    reversed: str
    destructive: str


CASES = {
    "remove": Case(
        ("rm old/o1.tmp", "rm old/o2.tmp", "rm old/o3.tmp"),
        "cp old/o1.tmp old/o4.tmp",
        "rm -r old",
    ),
    "create": Case(
        ("mkdir out", "echo 1 > out/a", "echo 2 > out/b", "ln -s a out/l"),
        "rm src/f1.txt",
        "rm -r src logs",
    ),
    "rename": Case(
        ("mv src/f1.txt src/g1.txt", "mv src/f2.txt src/g2.txt", "mv src/f3.txt src/g3.txt"),
        "mv src/f4.txt src/g4.txt",
        "rm src/f1.txt src/f2.txt src/f3.txt",
    ),
    "gather": Case(
        ("mkdir all", "mv src/f1.txt all", "mv src/f2.txt all", "mv logs/a.log all"),
        "mkdir all; mv all src",
        "rm src/f1.txt src/f2.txt logs/a.log",
    ),
    "permissions": Case(
        ("chmod 600 logs/a.log", "chmod 600 logs/b.log", "chmod 600 logs/c.log"),
        "chmod 666 logs/*.log",
        "rm logs/*.log",
    ),
    "edit one file": Case(
        (
            "sed -i s/port=1/port=80/ app.conf",
            "sed -i s/host=a/host=b/ app.conf",
            "sed -i s/debug=no/debug=yes/ app.conf",
        ),
        "sed -i s/level=2/level=9/ app.conf",
        ": > app.conf",
    ),
    "append": Case(
        ("echo zeta >> notes.txt", "echo eta >> notes.txt", "echo theta >> notes.txt"),
        "sed -i '$d' notes.txt",
        ": > notes.txt",
    ),
    "delete lines": Case(
        ("sed -i /beta/d notes.txt", "sed -i /delta/d notes.txt", "sed -i /epsilon/d notes.txt"),
        "echo omega >> notes.txt",
        "rm notes.txt",
    ),
    "pack": Case(
        ("cp src/f1.txt f1.bak", "tar -cf logs.tar --mtime=@0 --owner=0 logs", "rm -r logs"),
        "mkdir logs/logs",
        "rm -r logs src",
    ),
    "copy": Case(
        ("cp src/f1.txt logs", "cp src/f2.txt logs", "cp src/f3.txt logs", "cp src/f4.txt logs"),
        "cp logs/*.log src",
        "rm src/*",
    ),
    "sort in place": Case(
        (
            "sort -r notes.txt > t && mv t notes.txt",
            "sort src/f1.txt > t && mv t src/f1.sorted",
            "rm old/o1.tmp",
        ),
        "cat notes.txt notes.txt > t",
        "rm notes.txt src/f1.txt",
    ),
    "links": Case(
        ("ln -s ../src/f1.txt old/l1", "ln -s ../src/f2.txt old/l2", "ln -s ../src/f3.txt old/l3"),
        "ln -s ../old/l1 src/l1",
        "ln -sf old/l1 src/f1.txt",
    ),
    "mixed": Case(
        (
            "rm -r old",
            "mkdir -p new/a",
            "echo done > new/a/state",
            "chmod 700 new",
            "sed -i s/level=2/level=3/ app.conf",
        ),
        "mkdir old/new",
        "rm app.conf notes.txt src/*",
    ),
}
DATASET = Dataset(
    "mine",
    "bash",
    tuple(
        Task(
            f"mine/{name}",
            name,
            gold="\n".join(case.steps),
            setup=SETUP,
            cwd="/work",
            data={"compare": "changes"},
        )
        for name, case in CASES.items()
    ),
)


@pytest.fixture(scope="module")
def env() -> Iterator[InterCodeEnv]:
    with intercode.make("bash", dataset=DATASET) as made:
        yield made


def value_after(env: InterCodeEnv, name: str, *actions: str) -> float:
    env.reset(options={"task": f"mine/{name}"})
    for action in actions:
        env.step(action)
    return env.score().value


@pytest.mark.parametrize("name", CASES)
def test_each_step_of_a_gold_earns_more(env: InterCodeEnv, name: str) -> None:
    env.reset(options={"task": f"mine/{name}"})
    values = [env.score().value]
    for step in CASES[name].steps:
        env.step(step)
        values.append(env.score().value)
    check_steps(values)


@pytest.mark.parametrize("name", CASES)
def test_half_is_worth_more_than_the_opposite_and_destruction(env: InterCodeEnv, name: str) -> None:
    case = CASES[name]
    half = value_after(env, name, *case.steps[: (len(case.steps) + 1) // 2])
    assert 0.0 < half < 1.0
    assert value_after(env, name, case.reversed) == 0.0
    assert value_after(env, name, case.destructive) == 0.0
    assert value_after(env, name, "rm -rf /work/*") == 0.0
    assert value_after(env, name, *case.steps, "rm -f /work/src/f4.txt /work/notes.txt") < half


def test_doing_nothing_earns_nothing() -> None:
    dataset = load("starter:bash")
    with intercode.make("bash", dataset=dataset) as made:
        for index in range(len(dataset.tasks)):
            made.reset(seed=0, options={"task": index})
            assert made.score().value == 0.0, made.task.id


ANSWERS = Dataset(
    "answers",
    "bash",
    (
        Task(
            "answers/list",
            "List the files with their sizes.",
            setup=SETUP,
            cwd="/work",
            gold="find src -type f -printf '%p %s\\n'",
        ),
        Task("answers/mean", "Print the mean.", gold="echo 4.18182"),
        Task(
            "answers/order",
            "Print it backwards.",
            setup=SETUP,
            gold="tac /work/notes.txt",
            data={"compare": "order"},
        ),
        Task(
            "answers/clean",
            "Remove the old files and print how many.",
            setup=SETUP,
            cwd="/work",
            gold="find old -name '*.tmp' -print -delete | wc -l",
        ),
    ),
)
RANKED = {
    "list": [
        ["find src -type f -printf 'size=%s name=%p\\n'"],
        ["find src -type f -printf '%p %s\\n' | head -3"],
        ["find src -type f -printf '%p %s\\n' | head -1"],
        ["true"],
    ],
    "mean": [["echo 4.1818"], ["echo 0 1 2 3 4.18182 5 6 7 8 9"], ["echo 4"]],
    "order": [["tac /work/notes.txt | sed 1d"], ["cat /work/notes.txt"], ["cat /work/app.conf"]],
    "clean": [
        ["find old -name '*.tmp' -print -delete | wc -l; echo done"],
        ["rm old/*.tmp"],
        ["find old -name '*.tmp' | wc -l"],
        ["rm -r old; echo 3"],
        ["rm -r old src; echo 3"],
    ],
}


@pytest.mark.parametrize("name", RANKED)
def test_answers_are_in_the_order_of_their_worth(name: str) -> None:
    with intercode.make("bash", dataset=ANSWERS) as made:
        values = []
        for actions in RANKED[name]:
            made.reset(options={"task": f"answers/{name}"})
            for action in actions:
                made.step(action)
            values.append(made.score().value)
    assert all(better > worse for better, worse in pairwise(values)), values
    assert min(values) == 0.0


def test_a_right_answer_in_another_form_is_above_every_wrong_one() -> None:
    with intercode.make("bash", dataset=ANSWERS) as made:
        made.reset(options={"task": "answers/list"})
        made.step(RANKED["list"][0][0])
        assert made.score().value == OTHER_FORM > WRONG_MAX
