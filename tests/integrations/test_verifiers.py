"""verifiers plays episodes on our server through its own OpenEnv taskset.

It needs a virtual environment of its own, as it requires other versions of some packages: set
INTERCODE_VERIFIERS to the directory of its programs (``.ci/separate verifiers DIRECTORY``
makes it).
"""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openenv", reason="pip install 'intercode-gym[openenv]'")

import intercode
from support import requirements
from support.answering_endpoint import AnsweringEndpoint
from support.serving import serving

pytestmark = [pytest.mark.sandbox, pytest.mark.slow("long")]
ENVIRONMENTS = ("bash", "sql", "python", "ctf")
TASKS, SEED = (1, 2), 5
COMMANDS = Path(__file__).parents[1] / "support/verifiers_taskset/commands.py"
CONFIG = """
model = "scripted"
push = false
output_dir = "{folder}"
[client]
base_url = "{endpoint}"
api_key_var = "NO_KEY_IS_NEEDED"
[env.taskset]
id = "openenv"
base_url = "{server}"
resets = [{resets}]
[env.player.harness]
id = "null"
[env.player.runtime]
type = "subprocess"
"""


@pytest.fixture(scope="module")
def programs() -> Path:
    return requirements.framework_programs("verifiers")


def _solutions(environment: str) -> dict[str, tuple[str, bool]]:
    """Return for each query the code that solves it, and whether its output is the answer."""
    found = {}
    with intercode.make(environment) as env:
        for task in TASKS:
            query, _ = env.reset(seed=SEED, options={"task": task})
            found[query] = (env.task.solution or "", env.expects_answer)
    return found


def test_verifiers_own_taskset_plays(programs: Path, tmp_path: Path) -> None:
    """All environments in one process, because verifiers and OpenEnv take long to import."""
    known = {query: way for name in ENVIRONMENTS for query, way in _solutions(name).items()}

    def answer(messages: list[dict[str, Any]]) -> str:
        first = next(m for m in messages if m["role"] == "user")
        query = json.loads(first["content"])["observation"]["text"]
        solution, answers = known[query]
        if not any(m["role"] == "assistant" for m in messages):
            return solution
        printed = json.loads(messages[-1]["content"])["observation"]["text"].strip()
        return f"submit {printed}" if answers else "submit"

    resets = ", ".join(f"{{task = {task}, seed = {SEED}}}" for task in TASKS)
    commands = []
    with ExitStack() as stack:
        endpoint = stack.enter_context(AnsweringEndpoint(answer))
        for name in ENVIRONMENTS:
            server = stack.enter_context(serving("-m", "intercode", "serve", name))
            file = tmp_path / f"{name}.toml"
            file.write_text(
                CONFIG.format(
                    folder=tmp_path / name, endpoint=endpoint.url, server=server, resets=resets
                )
            )
            commands.append(["vf-eval", "@", str(file)])
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            [programs / "python", COMMANDS],
            input="\n".join(map(json.dumps, commands)),
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=500,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ENVIRONMENTS:
        [traces] = tmp_path.glob(f"{name}/*/traces.jsonl")
        rows = [json.loads(line) for line in traces.read_text().splitlines()]
        assert len(rows) == len(TASKS) and all(row["ok"] for row in rows), done.stdout
        rewards = [row["traces"][0]["rewards"]["openenv_reward"]["score"] for row in rows]
        assert rewards == [1.0] * len(TASKS), name
    assert len(endpoint.requests) == 2 * len(TASKS) * len(ENVIRONMENTS)
