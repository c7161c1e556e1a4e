"""Exports of a run of one of our agents, with native tool calls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from intercode.core.config import EvalConfig
from intercode.evaluation.evaluate.run import evaluate
from intercode.models import ScriptedModel
from intercode.results.export import export

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("real")
    tasks = home / "tasks.jsonl"
    tasks.write_text(json.dumps({"query": "print 9", "gold": "echo 9"}) + "\n")
    model = ScriptedModel(
        [
            {"calls": [{"name": "run_command", "arguments": {"command": "echo 9"}}]},
            {"text": "That is it.", "calls": [{"name": "submit", "arguments": {}}]},
        ]
    )
    config = EvalConfig(str(tasks), "tool-calling", model="s/m", parallel=1, out=home / "run")
    return evaluate(config, model=model, quiet=True)


def test_the_conversation_keeps_its_calls_and_tools(run: Path, tmp_path: Path) -> None:
    assert export(run, "chat", tmp_path / "a.jsonl").records == 1
    (row,) = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    *_, requested, sent, submitted = row["messages"]
    (call,) = requested["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"command": "echo 9"}
    assert sent["role"] == "tool" and sent["tool_call_id"] == call["id"] and "9" in sent["content"]
    assert submitted["content"] == "That is it."
    names = [tool["function"]["name"] for tool in row["tools"]]
    assert names == ["run_command", "submit"]
    assert all("$" not in tool["function"]["description"] for tool in row["tools"])
    assert "Bash" in row["tools"][0]["function"]["description"]


@pytest.mark.paper
def test_every_other_format_accepts_it(run: Path, tmp_path: Path) -> None:
    (document,) = export(run, "atif", tmp_path / "atif").files
    steps = json.loads(document.read_text())["steps"]
    assert [s["source"] for s in steps] == ["system", "user", "agent", "agent"]
    assert steps[2]["observation"]["results"][0]["content"] == "9\n"
    (log,) = export(run, "authors", tmp_path / "logs").files
    (episode,) = json.loads(log.read_text()).values()
    assert episode["turn_history"]["actions"] == ["echo 9", "submit"]
    assert episode["summary"]["max_reward"] == 1.0
