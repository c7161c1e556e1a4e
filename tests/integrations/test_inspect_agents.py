"""Inspect's own agents and tools in our sandboxes: tools that it puts into them, its human agent,
to whose shell a terminal of this machine connects, and its bridge for programs that are agents."""

from __future__ import annotations

import os
import pty
import runpy
import select
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("inspect_ai", reason="pip install 'intercode-gym[inspect]'")

from inspect_ai import Task
from inspect_ai import eval as inspect_eval
from inspect_ai.agent import human_cli
from inspect_ai.agent._human.view import ConsoleView
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import bash_session, text_editor
from inspect_ai.util import SandboxConnection

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

_QUESTION = "What is 6 * 7?"
_TIME_LIMIT = 300  # seconds; on an idle machine a human needs about 10


@solver
def uses_tools() -> Solver:
    """Writes a file with one tool and reads it with the other."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        await text_editor()(command="create", path="/tmp/a.txt", file_text="forty\ntwo\n")
        shell = bash_session()
        text = await shell(action="type_submit", input="tail -n 1 /tmp/a.txt; whoami")
        state.output = ModelOutput.from_content("mock", str(text))
        return state

    return solve


def test_injected_tools_work_on_the_default_image(tmp_path: Path) -> None:
    [log] = inspect_eval(
        Task(dataset=[Sample(input="x")], solver=uses_tools(), sandbox="intercode"),
        model="mockllm/model",
        log_dir=str(tmp_path),
        display="none",
    )
    assert log.status == "success", log.error
    [sample] = log.samples or ()
    lines = sample.output.completion.splitlines()
    assert "two" in lines[0] and lines[1] == "root"


def _type_answer(command: str, seen: list[bytes]) -> None:
    """Log in with the command of a connection, read the instructions, submit 42 and confirm it.

    Inspect lets a human log in before its service answers, so the instructions are asked for until
    they come.
    """
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv("/bin/sh", ["sh", "-c", command])
    unanswered, end = b"", time.monotonic() + _TIME_LIMIT
    while time.monotonic() < end:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            seen.append(os.read(terminal, 4096))
        except OSError:  # the sandbox has ended
            break
        unanswered += seen[-1]
        if unanswered.endswith(b"No (n): "):
            answer = b"y\n"
        elif unanswered.endswith(b"# "):
            known = _QUESTION.encode() in b"".join(seen)
            answer = b"task submit 42\n" if known else b"task instructions\n"
        else:
            continue
        os.write(terminal, answer)
        unanswered = b""
    os.close(terminal)
    os.waitpid(pid, 0)


def test_a_human_solves_a_sample_at_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bytes] = []
    humans: list[threading.Thread] = []

    def log_in(_: ConsoleView, connection: SandboxConnection) -> None:
        humans.append(threading.Thread(target=_type_answer, args=(connection.command, seen)))
        humans[0].start()

    monkeypatch.setattr(ConsoleView, "connect", log_in)
    task = Task(dataset=[Sample(input=_QUESTION)], solver=human_cli(), sandbox="intercode")
    [log] = inspect_eval(
        task, model="mockllm/model", log_dir=str(tmp_path), display="none", time_limit=_TIME_LIMIT
    )
    humans[0].join()
    assert log.status == "success", log.error
    [sample] = log.samples or ()
    assert sample.output.completion == "42"
    assert _QUESTION.encode() in b"".join(seen)


def test_a_program_in_the_sandbox_uses_the_model_through_the_bridge(tmp_path: Path) -> None:
    names = runpy.run_path(str(Path(__file__).parents[2] / "examples/inspect_program.py"))
    answer = ModelOutput.from_content("mockllm/model", "42 it is")
    answer.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    model = get_model("mockllm/model", custom_outputs=[answer], memoize=False)
    [log] = inspect_eval(names["task"], model=model, log_dir=str(tmp_path), display="none")
    assert log.status == "success", log.error
    [sample] = log.samples or ()
    assert [(m.role, m.text) for m in sample.messages][-2:] == [
        ("user", "Print 6 * 7."),
        ("assistant", "42 it is"),
    ]
    assert sample.output.completion == "42 it is"
    [call] = [event for event in sample.events if event.event == "model"]
    assert call.input[-1].text == "Print 6 * 7."
    assert sample.store["printed"] == "42 it is\n"
