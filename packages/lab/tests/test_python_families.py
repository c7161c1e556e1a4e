"""Python tasks of families in their environment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from intercode.core.types import Dataset
from intercode.environments.python.env import PythonEnv
from intercode_lab.families.family import find_family
from support.python_tasks import ALL

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def env() -> Iterator[PythonEnv]:
    with PythonEnv(ALL, timeout=20.0) as opened:
        yield opened


def test_a_file_that_is_absent_in_the_tests_is_of_no_use_to_the_function() -> None:
    """An action that imports it is run again as far as possible."""
    task = find_family("python", "undo-module")(7, 2)
    (module,), name = (path[:-3] for path in task.data["absent_in_tests"]), task.data["entry"]
    search = (
        f"import {module}\ndef {name}(code):\n    text = ''\n    while len(text) < len(code):\n"
        f"        text += next(c for c in map(chr, range(97, 123))\n"
        f"            if code.startswith({module}.encode(text + c)))\n    return text\n"
    )
    honest = f"import {module}\n{task.gold}\nprint({name}({module}.encode('abc')))"
    present = replace(task, id="present", data={**task.data, "absent_in_tests": ()})
    with PythonEnv(Dataset("own", "python", (task, present))) as env:
        for chosen, code, value in (
            (task, search, 0.0),
            (present, search, 1.0),
            (task, honest, 1.0),
        ):
            env.reset(options={"task": chosen.id})
            assert env.step(code)[4]["exit_code"] == 0
            assert env.score().value == value


def test_an_unused_interpreter_is_not_given_to_a_task_with_other_files() -> None:
    tasks = tuple(find_family("python", "undo-module")(seed, 1) for seed in (0, 1))
    with PythonEnv(Dataset("own", "python", tasks)) as env:
        for task in tasks:
            env.reset(options={"task": task.id})
            (entry,) = task.initial_files
            assert env.sandbox.read(entry.path) == entry.data
