"""ATIF documents: the rules of the format, and the place of every field.

Harbor's models validate some documents, where Harbor is installed (see
``tests/integrations/test_harbor_provider.py``). The rules below are those of its release 0.25.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from intercode.core.errors import UsageError
from intercode.results.export import export
from intercode.results.export.atif import to_document
from support.requirements import framework_programs
from support.talks import human_episode, talk

KEYS = {
    "document": {
        "schema_version",
        "session_id",
        "trajectory_id",
        "agent",
        "steps",
        "notes",
        "final_metrics",
        "continued_trajectory_ref",
        "extra",
        "subagent_trajectories",
    },
    "agent": {"name", "version", "model_name", "tool_definitions", "extra"},
    "step": {
        "step_id",
        "timestamp",
        "source",
        "model_name",
        "reasoning_effort",
        "message",
        "reasoning_content",
        "tool_calls",
        "observation",
        "metrics",
        "is_copied_context",
        "llm_call_count",
        "extra",
    },
    "tool_call": {"tool_call_id", "function_name", "arguments", "extra"},
    "observation": {"results"},
    "result": {"source_call_id", "content", "subagent_trajectory_ref", "extra"},
    "metrics": {
        "prompt_tokens",
        "completion_tokens",
        "cached_tokens",
        "cost_usd",
        "prompt_token_ids",
        "completion_token_ids",
        "logprobs",
        "extra",
    },
    "final_metrics": {
        "total_prompt_tokens",
        "total_completion_tokens",
        "total_cached_tokens",
        "total_cost_usd",
        "total_steps",
        "extra",
    },
}
AGENT_ONLY = {"model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics"}


def check(found: dict[str, Any]) -> None:
    """Check every rule of ATIF 1.8 for documents with one trajectory and text only."""
    assert found["schema_version"] == "ATIF-v1.8"
    assert found.keys() <= KEYS["document"] and found["agent"].keys() <= KEYS["agent"]
    assert all(isinstance(found["agent"][k], str) for k in ("name", "version"))
    assert found["final_metrics"].keys() <= KEYS["final_metrics"]
    assert found["final_metrics"]["total_steps"] == len(found["steps"]) >= 1
    for number, step in enumerate(found["steps"], start=1):
        assert step.keys() <= KEYS["step"] and step["step_id"] == number
        assert isinstance(step["message"], str)
        assert step["source"] in ("system", "user", "agent")
        assert step["source"] == "agent" or not AGENT_ONLY & step.keys()
        calls = step.get("tool_calls", [])
        for call in calls:
            assert call.keys() <= KEYS["tool_call"] and isinstance(call["arguments"], dict)
        assert step.get("metrics", {}).keys() <= KEYS["metrics"]
        for result in step.get("observation", {"results": []})["results"]:
            assert result.keys() <= KEYS["result"]
            known = {call["tool_call_id"] for call in calls}
            assert result.get("source_call_id") in known | {None}
    _nothing_empty(found)


def _nothing_empty(value: Any, path: str = "") -> None:
    """Check that no key has the value null, except in our own ``extra``: unknown values are left
    out."""
    if isinstance(value, dict):
        for key, inner in value.items():
            assert inner is not None, f"{path}/{key}"
            if key != "extra":
                _nothing_empty(inner, f"{path}/{key}")
    elif isinstance(value, list):
        for inner in value:
            _nothing_empty(inner, path)


VALIDATE = """\
import json, sys
from harbor.models.trajectories import Trajectory
for document in json.load(sys.stdin):
    Trajectory.model_validate(document)
"""


def check_by_harbor(*documents: dict[str, Any]) -> None:
    """Validate documents by the models of Harbor, which has an interpreter of its own."""
    python = framework_programs("harbor") / "python"
    done = subprocess.run(
        [python, "-c", VALIDATE],
        input=json.dumps(documents),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_conversation_with_tools() -> None:
    found = to_document(talk())
    check(found)
    system, task, first, second = found["steps"]
    assert (system["source"], task["source"]) == ("system", "user")
    assert task["message"] == "Task: q"
    assert first["tool_calls"] == [
        {"tool_call_id": "c1", "function_name": "run_command", "arguments": {"command": "ls"}}
    ]
    assert first["reasoning_content"] == "look"
    (result,) = first["observation"]["results"]
    assert result == {"source_call_id": "c1", "content": "a", "extra": {"told": "[told] a"}}
    assert second["observation"]["results"] == [{"source_call_id": "c2", "content": "hello"}]
    assert first["metrics"] == {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "cost_usd": 0.5,
        "prompt_token_ids": [1, 2, 3],
        "completion_token_ids": [4, 5],
        "logprobs": [-0.5, -0.25],
        "extra": {"requests": 1},
    }
    totals = found["final_metrics"]
    assert (totals["total_prompt_tokens"], totals["total_cost_usd"]) == (250, 0.75)
    assert found["agent"]["tool_definitions"][1]["function"]["name"] == "submit"
    assert second["extra"]["reward"] == 1.0 and found["extra"]["success"] is True


def test_a_persons_turn_is_the_users() -> None:
    found = to_document(human_episode())
    check(found)
    (turn,) = [s for s in found["steps"] if s["message"] == "ls"]
    assert turn["source"] == "user" and turn["extra"]["actor"] == "human"
    assert turn["observation"]["results"] == [{"content": "a"}]


@pytest.mark.paper
@pytest.mark.parametrize(
    "name",
    [
        "bash/ic_bash_react_10_turns_fs_1.json",
        "ctf/ic_ctf_multiturn_gpt-4_10_turns.json",
        "python/ic_python_multiturn_gpt-3.5_7_turns.json",
        "sql/ic_sql_multiturn_human_10_turns.json",
    ],
)
def test_every_published_episode_is_a_document(
    recorded_dir: Path, tmp_path: Path, name: str
) -> None:
    log = recorded_dir / name
    written = export(log, "atif", tmp_path)
    source = json.loads(log.read_text())
    assert len(set(written.files)) == written.records == len(source)
    for path in written.files:
        found = json.loads(path.read_text("utf-8"))
        check(found)
        number = str(found["extra"]["task"].rpartition("/")[2])
        if found["extra"]["dataset"] == "mbpp":  # the ids of mbpp count from 1, the log from 0
            number = str(int(number) - 1)
        row = source[number]
        turns = [s for s in found["steps"] if s["source"] == "agent"]
        text = [s["observation"]["results"][0]["content"] for s in turns]
        history = row.get("turn_history")
        steps = [t["observation"] for t in row.get("trajectory", ())]
        assert text == (history["observations"] if history else steps)


@pytest.mark.parametrize("make", [talk, human_episode])
def test_harbor_accepts_them(make: Any) -> None:
    check_by_harbor(to_document(make()))


@pytest.mark.paper
def test_harbor_accepts_the_published_logs(recorded_dir: Path, tmp_path: Path) -> None:
    log = recorded_dir / "bash" / "ic_bash_plan_solve_fs_4.json"
    files = export(log, "atif", tmp_path).files
    check_by_harbor(*(json.loads(path.read_text("utf-8")) for path in files))


@pytest.mark.paper
def test_a_file_in_the_way_is_named(recorded_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    log = recorded_dir / "bash" / "ic_bash_react_10_turns_fs_1.json"
    with pytest.raises(UsageError, match="a directory is needed"):
        export(log, "atif", tmp_path / "file")
