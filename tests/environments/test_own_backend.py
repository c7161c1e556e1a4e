"""A back end of about 100 lines, without isolation: the contract, tasks, and what it lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

import intercode
from intercode.core.errors import MissingCapabilityError, SandboxLostError
from intercode.core.types import Dataset, Task
from intercode.datasets import load
from intercode_sandbox import SandboxSpec, check_sandbox, images
from support import unisolated_sandbox
from support.unisolated_sandbox import UnisolatedSandbox

FILE = unisolated_sandbox.__file__
BACKEND = f"{FILE}:UnisolatedSandbox"
PYTHON_TASKS = load("starter", "python").tasks
BASH_TASKS = Dataset(
    "own",
    "bash",
    (
        Task("own/count", "Count.", gold="seq 12 | wc -l"),
        Task("own/write", "Write.", gold="mkdir -p tmp/a && echo hi > tmp/a/b && cat tmp/a/b"),
        Task("own/variables", "Set.", gold="x=7; f() { echo $((x * 6)); }; f"),
    ),
)


def open_one() -> UnisolatedSandbox:
    """A sandbox of the back end."""
    return UnisolatedSandbox(SandboxSpec(images.resolve("host")))


def test_it_has_at_most_110_lines_and_fulfils_the_contract() -> None:
    assert len(Path(FILE).read_text().splitlines()) <= 110
    check_sandbox(open_one)


def test_a_sandbox_takes_it() -> None:
    with intercode.Sandbox("host", backend=BACKEND, env={"NAME": "value"}) as sandbox:
        assert sandbox.tier == "unisolated"
        assert sandbox.run("echo $NAME").output == "value\n"
        assert sandbox.run(["/bin/echo", "$NAME"]).output == "$NAME\n"
    with pytest.raises(SandboxLostError):
        sandbox.run("true")


@pytest.mark.parametrize("i", range(0, len(PYTHON_TASKS), 5))
def test_it_plays_python_tasks(i: int) -> None:
    with intercode.make("python", backend=BACKEND, image="host") as env:
        env.reset(options={"task": i})
        env.step(str(env.task.gold))
        assert env.step("submit")[1] == 1.0
        assert "unisolated_sandbox.py:UnisolatedSandbox@" in env.result_metadata()["tier"]


def test_it_plays_bash_tasks_whose_paths_are_relative() -> None:
    with intercode.make("bash", dataset=BASH_TASKS, backend=BACKEND, image="host") as env:
        for i, task in enumerate(BASH_TASKS.tasks):
            env.reset(options={"task": i})
            assert env.step("echo not it; echo > wrong; bash: echo")[1] < 1.0
            assert env.step("submit")[1] < 1.0
            env.reset(options={"task": i})
            env.step(str(task.gold))
            assert env.step("submit")[1] == 1.0, task.id


def test_an_error_is_reported_under_the_name_of_the_shell() -> None:
    with intercode.make("bash", dataset=BASH_TASKS, backend=BACKEND, image="host") as env:
        env.reset()
        assert "bash: line 1: no-such-command: command not found" in env.step("no-such-command")[0]


def test_a_missing_capability_is_named_when_it_is_needed() -> None:
    with intercode.make(
        "bash", dataset=BASH_TASKS, backend=BACKEND, image="host", timeout=1
    ) as env:
        env.reset()
        with pytest.raises(MissingCapabilityError, match=r"'processes'.* an action leaves behind"):
            env.step("sleep 60")
    with intercode.make("python", backend=BACKEND, image="host") as env:
        env.reset()
        with pytest.raises(MissingCapabilityError, match="'processes'"):
            env.snapshot()
