"""verifiers plays episodes on our server through its own OpenEnv taskset.

It needs a virtual environment of its own, as it requires other versions of some packages: set
INTERCODE_VERIFIERS to the directory of its programs (``.ci/verifiers.txt`` lists what is installed
there).
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openenv", reason="pip install 'intercode-gym[openenv]'")

import intercode
from support.answering_endpoint import AnsweringEndpoint
from support.serving import serving

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]
TASKS, SEED = (1, 2), 5
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
    directory = os.environ.get("INTERCODE_VERIFIERS")
    if not directory:
        pytest.skip("set INTERCODE_VERIFIERS to the bin directory of .ci/verifiers.txt installed")
    return Path(directory).absolute()


def _solutions(environment: str) -> dict[str, tuple[str, bool]]:
    """Return for each query the code that solves it, and whether its output is the answer."""
    found = {}
    with intercode.make(environment) as env:
        for task in TASKS:
            query, _ = env.reset(seed=SEED, options={"task": task})
            found[query] = (env.task.solution or "", env.expects_answer)
    return found


@pytest.mark.parametrize("environment", ["bash", "sql", "python", "ctf"])
def test_verifiers_own_taskset_plays(environment: str, programs: Path, tmp_path: Path) -> None:
    known = _solutions(environment)

    def answer(messages: list[dict[str, Any]]) -> str:
        first = next(m for m in messages if m["role"] == "user")
        query = json.loads(first["content"])["observation"]["text"]
        solution, answers = known[query]
        if not any(m["role"] == "assistant" for m in messages):
            return solution
        printed = json.loads(messages[-1]["content"])["observation"]["text"].strip()
        return f"submit {printed}" if answers else "submit"

    resets = ", ".join(f"{{task = {task}, seed = {SEED}}}" for task in TASKS)
    with (
        serving("-m", "intercode", "serve", environment) as server,
        AnsweringEndpoint(answer) as endpoint,
    ):
        file = tmp_path / "eval.toml"
        file.write_text(CONFIG.format(
            folder=tmp_path, endpoint=endpoint.url, server=server, resets=resets
        ))  # fmt: skip
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            [programs / "vf-eval", "@", file], env={**os.environ, "PATH": path},
            capture_output=True, text=True, timeout=500,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    [traces] = tmp_path.glob("*/traces.jsonl")
    rows = [json.loads(line) for line in traces.read_text().splitlines()]
    assert len(rows) == len(TASKS) and all(row["ok"] for row in rows), done.stdout
    rewards = [row["traces"][0]["rewards"]["openenv_reward"]["score"] for row in rows]
    assert rewards == [1.0] * len(TASKS)
    assert len(endpoint.requests) == 2 * len(TASKS)
