"""The taskset package for verifiers: its wheel, verifiers' validator, and episodes of all
environments through ``vf-eval``, without OpenEnv.

It needs a virtual environment of verifiers, as ``test_verifiers.py``. The model is scripted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import intercode
from support import requirements
from support.answering_endpoint import AnsweringEndpoint
from support.sources import SOURCES, write_metadata

pytest.importorskip("uv", reason="pip install uv")
pytestmark = [pytest.mark.sandbox, pytest.mark.slow("long")]
ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ("bash", "sql", "python", "code", "ctf")
VALIDATED = 3
PREFIX = "echo $RANDOM"
EVALUATION = """
model = "scripted"
push = false
num_rollouts = {rollouts}
output_dir = "{folder}"
[select]
limit = 1
[client]
base_url = "{endpoint}"
api_key_var = "NO_KEY_IS_NEEDED"
[env]
branches = {branches}
branch_after = 1
[env.taskset]
id = "intercode-tasks"
environment = "{environment}"
dataset = "{dataset}"
seed = 0
prefix = {prefix}
max_turns = {turns}
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "uv", "build", "-q", "--wheel", "-o", folder]
    subprocess.run([*build, ROOT / "examples" / "verifiers"], check=True, capture_output=True)
    [path] = folder.glob("*.whl")
    return path


class _Player:
    """Solves the first task of each dataset that it has learned, and keeps what a prefix
    printed."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[str, bool]] = {}
        self.numbers: list[str] = []

    def learn(self, environment: str, dataset: str) -> None:
        """Learn the first task of a dataset."""
        with intercode.make(environment, dataset) as env:
            query, _ = env.reset(seed=0, options={"task": 0})
            self.known[query] = (env.task.solution or "", env.expects_answer)

    def answer(self, messages: list[dict[str, Any]]) -> str:
        first = next(m["content"] for m in messages if m["role"] == "user")
        solution, answers = next(v for k, v in self.known.items() if first.startswith(k))
        if not any(m["role"] == "assistant" for m in messages):
            assert "judged" in first
            if PREFIX in first:
                self.numbers.append(first.splitlines()[-1])
            return f"```\n{solution}\n```"
        return f"```\nsubmit {messages[-1]['content'].strip() if answers else ''}\n```"


def _run_all(wheel: Path, commands: list[list[str]], folder: Path) -> None:
    """Run commands of verifiers with the package."""
    programs = requirements.framework_programs("verifiers")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")
    done = subprocess.run(
        [
            programs / "python",
            ROOT / "tests/support/verifiers_taskset/commands.py",
            "--without-openenv",
        ],
        input="\n".join(map(json.dumps, commands)),
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join([*SOURCES, str(write_metadata(folder / "installed"))]),
        },
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _episodes(folder: Path) -> list[dict[str, Any]]:
    """Return the episodes that an evaluation has written."""
    [traces] = folder.glob("*/traces.jsonl")
    return [json.loads(line) for line in traces.read_text().splitlines()]


def test_the_wheel_holds_the_taskset_and_its_page(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        modules = {name for name in archive.namelist() if name.endswith(".py")}
        [metadata] = [n for n in archive.namelist() if n.endswith("METADATA")]
        described = archive.read(metadata).decode()
    assert modules == {"intercode_tasks/__init__.py", "intercode_tasks/taskset.py"}
    assert "Requires-Dist: intercode-gym" in described and "Requires-Dist: verifiers" in described
    assert "# intercode-tasks" in described


def test_all_environments_play_and_are_valid(wheel: Path, tmp_path: Path) -> None:
    """Tasks of families without end in every environment, in one turn where the state is scored;
    starter tasks for the validator, and after a prefix, from which the rollouts of a task fork. The
    commands are those of docs/verifiers.md."""
    player = _Player()
    plays = [(e, f"families:{e}", [], 2 if e == "ctf" else 1, 1) for e in ENVIRONMENTS]
    plays.append(("bash", "starter", [PREFIX], 3, 2))
    with AnsweringEndpoint(player.answer) as endpoint:
        commands = []
        for number, (environment, dataset, prefix, turns, rollouts) in enumerate(plays):
            player.learn(environment, dataset)
            file = tmp_path / f"{number}.toml"
            file.write_text(
                EVALUATION.format(
                    folder=tmp_path / f"eval-{number}",
                    endpoint=endpoint.url,
                    turns=turns,
                    environment=environment,
                    dataset=dataset,
                    prefix=prefix,
                    rollouts=rollouts,
                    branches=1,
                )
            )
            commands.append(["vf-eval", "@", str(file)])
        for environment in ENVIRONMENTS:
            commands.append(
                [
                    "vf-validate",
                    "intercode-tasks",
                    "--taskset.environment",
                    environment,
                    "--runtime.type",
                    "subprocess",
                    "--rich",
                    "False",
                    "--select.limit",
                    str(VALIDATED),
                    "--output-dir",
                    str(tmp_path / f"validate-{environment}"),
                ]
            )
        _run_all(wheel, commands, tmp_path)
    for number, (environment, _, _, _, rollouts) in enumerate(plays):
        rows = _episodes(tmp_path / f"eval-{number}")
        scores = [row["traces"][0]["rewards"]["intercode"]["score"] for row in rows]
        assert scores == [1.0] * rollouts and all(row["ok"] for row in rows), environment
    for environment in ENVIRONMENTS:
        [summary] = tmp_path.glob(f"validate-{environment}/*/summary.json")
        found = json.loads(summary.read_text())
        assert (found["total"], found["valid_rate"]) == (VALIDATED, 1.0), environment
    assert len(player.numbers) == 2 and len(set(player.numbers)) == 1


def test_a_live_episode_is_forked_into_continuations(wheel: Path, tmp_path: Path) -> None:
    """The first answer is given once. Each continuation has what it left, does something else, and
    has a trace with a reward of its own. An episode that is over by then has one trace."""
    with intercode.make("bash") as env:
        env.reset(options={"task": 0})
        solution = env.task.solution
    given, lock = Counter[int](), threading.Lock()

    def answer(messages: list[dict[str, Any]]) -> str:
        turn = sum(m["role"] == "assistant" for m in messages)
        with lock:
            given[turn] += 1
            last = solution if given[turn] == 1 else "true"
        return f"```\n{('n=$RANDOM; echo $n', 'echo again $n', last)[turn]}\n```"

    with AnsweringEndpoint(answer) as endpoint:
        commands = []
        for turns in (1, 3):
            file = tmp_path / f"{turns}.toml"
            file.write_text(
                EVALUATION.format(
                    folder=tmp_path / f"eval-{turns}",
                    endpoint=endpoint.url,
                    turns=turns,
                    environment="bash",
                    dataset="starter",
                    prefix=[],
                    rollouts=1,
                    branches=2,
                )
            )
            commands.append(["vf-eval", "@", str(file)])
        _run_all(wheel, commands, tmp_path)
    assert given == {0: 2, 1: 2, 2: 2}  # the first answer once in each evaluation
    [whole] = _episodes(tmp_path / "eval-1")
    assert whole["ok"] and len(whole["traces"]) == 1
    [forked] = _episodes(tmp_path / "eval-3")
    assert forked["ok"]
    traces = [[node["message"] for node in trace["nodes"]] for trace in forked["traces"]]
    assert len(traces) == 2 and traces[0][:4] == traces[1][:4]
    roles = [message["role"] for message in traces[0]]
    assert roles == ["system", "user", *["assistant", "user"] * 2, "assistant"]
    number = traces[0][3]["content"].strip()
    assert [trace[5]["content"].strip() for trace in traces] == [f"again {number}"] * 2
    sampled = [sum(node["sampled"] for node in trace["nodes"]) for trace in forked["traces"]]
    assert sorted(sampled) == [2, 3]  # the trainable answers: the first one is in one trace
    scores = [trace["rewards"]["intercode"]["score"] for trace in forked["traces"]]
    assert sorted(score == 1.0 for score in scores) == [False, True]
