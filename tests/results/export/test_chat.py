"""Conversations for fine-tuning."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from intercode.agents.parsing import CHANGES_NOTE
from intercode.core.errors import UnknownNameError
from intercode.results.export import export
from intercode.results.export.chat import export as chat
from support.descriptions import describe
from support.talks import talk


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_successful_episodes_only_with_tools_and_without_token_ids(tmp_path: Path) -> None:
    out = tmp_path / "a.jsonl"
    written = chat([talk(), talk(success=False)], out)
    assert written.records == 1 and "1 episodes without success" in written.omitted[0]
    (row,) = _rows(out)
    roles = [m["role"] for m in row["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant"]
    assert row["messages"][2]["tool_calls"][0]["id"] == row["messages"][3]["tool_call_id"] == "c1"
    assert row["messages"][2]["reasoning_content"] == "look"
    assert all("tokens" not in m for m in row["messages"])
    tool = row["tools"][0]["function"]
    assert tool["name"] == "run_command" and tool["description"] == "Run Bash code."
    assert tool["parameters"]["required"] == ["command"]
    assert row["metadata"]["rewards"] == [None, 1.0]
    assert row["metadata"]["made_from"] == "messages"


def test_all_episodes_with_their_rewards(tmp_path: Path) -> None:
    out = tmp_path / "a.jsonl"
    assert chat([talk(), talk(success=False)], out, which="all").records == 2
    assert [r["metadata"]["reward"] for r in _rows(out)] == [1.0, 0.0]
    assert chat([talk()], out, messages_only=True).records == 1
    assert set(_rows(out)[0]) == {"messages", "tools"}


@pytest.mark.parametrize("note", [CHANGES_NOTE, describe("bash").judged])
def test_a_tool_says_what_the_conversation_says_is_judged(note: str, tmp_path: Path) -> None:
    prompt = "== run ==\nRun it. $judged\n\n== submit ==\nHand in."
    episode = talk()
    run = {**episode.run, "agent_metadata": {"prompt": {"text": prompt}}}
    system = {"role": "system", "content": f"You act.\n- {note}"}
    first = replace(episode.steps[0], messages=(system, *episode.steps[0].messages[1:]))
    chat([episode.replace(run=run, steps=(first, *episode.steps[1:]))], tmp_path / "a.jsonl")
    (row,) = _rows(tmp_path / "a.jsonl")
    assert row["tools"][0]["function"]["description"] == f"Run it. {note}"


def test_turns_that_ran_one_by_one(tmp_path: Path) -> None:
    out = tmp_path / "a.jsonl"
    chat([talk()], out, which="turns")
    (row,) = _rows(out)  # the first turn's action was invalid
    assert row["messages"][-1]["content"] == "now" and row["metadata"]["turns"] == 2
    with pytest.raises(UnknownNameError, match="did you mean 'turns'"):
        chat([talk()], out, which="turn")


@pytest.mark.paper
def test_a_log_without_messages_gives_actions_and_observations(
    recorded_dir: Path, tmp_path: Path
) -> None:
    log = recorded_dir / "bash" / "ic_bash_multiturn_gpt-4_10_turns_fs_2.json"
    written = export(log, "chat", tmp_path / "a.jsonl")
    rows = _rows(tmp_path / "a.jsonl")
    assert len(rows) == written.records == 25
    source = json.loads(log.read_text())
    for row in rows:
        number = row["metadata"]["task"].rpartition("/")[2]
        history = source[number]["turn_history"]
        turns = history["rewards"].index(1.0) + 1
        answers = [m["content"] for m in row["messages"] if m["role"] == "assistant"]
        prompts = [m["content"] for m in row["messages"] if m["role"] == "user"]
        assert answers == history["actions"][:turns]
        assert prompts == [source[number]["query"], *history["observations"][: turns - 1]]
        assert row["metadata"]["made_from"] == "actions" and "tools" not in row
    export(log, "chat", tmp_path / "b.jsonl", which="all")
    assert len(_rows(tmp_path / "b.jsonl")) == 53
