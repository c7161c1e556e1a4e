"""The taskset package for verifiers plays with ``vf-eval``, without OpenEnv.

It needs a virtual environment of verifiers, as ``test_verifiers.py``. The model is scripted.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import intercode
from support.answering_endpoint import AnsweringEndpoint

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "examples" / "verifiers"
COUNT = 2
CONFIG = """
model = "scripted"
push = false
output_dir = "{folder}"
[select]
limit = {count}
[client]
base_url = "{endpoint}"
api_key_var = "NO_KEY_IS_NEEDED"
[env.taskset]
id = "intercode-tasks"
environment = "{environment}"
"""


def _solutions(environment: str) -> dict[str, tuple[str, bool]]:
    """Return for each query the code that solves it, and whether its output is the answer."""
    found = {}
    with intercode.make(environment) as env:
        for task in range(COUNT):
            query, _ = env.reset(seed=0, options={"task": task})
            found[query] = (env.task.solution or "", env.expects_answer)
    return found


@pytest.mark.parametrize("environment", ["bash"])
def test_the_taskset_plays(environment: str, tmp_path: Path) -> None:
    programs = os.environ.get("INTERCODE_VERIFIERS")
    if not programs:
        pytest.skip("set INTERCODE_VERIFIERS to the bin directory of .ci/verifiers.txt installed")
    known = _solutions(environment)

    def answer(messages: list[dict[str, Any]]) -> str:
        query = next(m["content"] for m in messages if m["role"] == "user")
        solution, answers = known[query]
        if not any(m["role"] == "assistant" for m in messages):
            return f"```\n{solution}\n```"
        printed = messages[-1]["content"].strip()
        return f"```\nsubmit {printed}\n```" if answers else "```\nsubmit\n```"

    with AnsweringEndpoint(answer) as endpoint:
        config = tmp_path / "eval.toml"
        config.write_text(CONFIG.format(
            folder=tmp_path, endpoint=endpoint.url, count=COUNT, environment=environment
        ))  # fmt: skip
        directory = Path(programs).absolute()
        done = subprocess.run(
            [directory / "vf-eval", "@", config], capture_output=True, text=True, timeout=500,
            env={
                **os.environ, "PATH": f"{directory}{os.pathsep}{os.environ['PATH']}",
                "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(PACKAGE)]),
            },
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    [traces] = tmp_path.glob("*/traces.jsonl")
    rows = [json.loads(line) for line in traces.read_text().splitlines()]
    assert [row["traces"][0]["rewards"]["intercode"]["score"] for row in rows] == [1.0] * COUNT
    assert all(row["ok"] for row in rows) and len(endpoint.requests) == 2 * COUNT
