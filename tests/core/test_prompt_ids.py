"""Ids of prompts are written once, and read whole."""

from __future__ import annotations

import json

import pytest

from intercode.core.errors import DataError
from intercode.core.trajectories import trajectory_from_row, trajectory_to_row
from support.token_episodes import FIRST, token_calls, token_episode


def test_a_record_repeats_no_ids_and_is_read_whole() -> None:
    calls = token_calls()
    row = json.loads(json.dumps(trajectory_to_row(token_episode(calls))))
    written = [step["messages"][-1]["tokens"] for step in row["steps"]]
    assert written[0]["prompt_ids"] == FIRST and "prompt_after" not in written[0]
    for before, call, tokens in zip(calls, calls[1:], written[1:], strict=False):
        assert tokens["prompt_after"] == len(before["prompt_ids"]) + len(before["ids"])
        assert tokens["prompt_ids"] == call["prompt_ids"][tokens["prompt_after"] :]
    read = [step.messages[-1]["tokens"] for step in trajectory_from_row(row).steps]
    assert read == calls
    assert row == json.loads(json.dumps(trajectory_to_row(trajectory_from_row(row))))
    assert row["v"] == 3  # earlier readers would take what is written for the whole prompt


def test_prompts_that_differ_and_calls_without_ids_are_written_as_they_are() -> None:
    calls = token_calls()
    del calls[1]["prompt_ids"][2], calls[0]["ids"]
    episode = token_episode(calls)
    episode = episode.replace(steps=(*episode.steps, episode.steps[1]))
    row = json.loads(json.dumps(trajectory_to_row(episode)))
    assert all("prompt_after" not in s["messages"][-1]["tokens"] for s in row["steps"][1:])
    read = [step.messages[-1]["tokens"] for step in trajectory_from_row(row).steps]
    assert read == [*calls, calls[1]]
    assert row["v"] == 2


@pytest.mark.parametrize("after", [-1, 99, "3", 1.5, None])
def test_ids_that_no_call_has_are_refused(after: object) -> None:
    row = trajectory_to_row(token_episode())
    row["steps"][1]["messages"][-1]["tokens"]["prompt_after"] = after
    with pytest.raises(DataError, match="prompt_after"):
        trajectory_from_row(row)
