"""Token-level records: the endpoint's ids, joined where prompts continue each other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from intercode.core.errors import UsageError
from intercode.core.types import Trajectory
from intercode.results.export.tokens import export
from support.talks import talk


def _rows(path: Path, *episodes: Trajectory) -> list[dict[str, Any]]:
    export(episodes, path)
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _with(tokens: dict[str, Any]) -> Trajectory:
    """Return the episode whose second answer holds these tokens."""
    episode = talk()
    last = episode.steps[1]
    answer = {**last.messages[-1], "tokens": tokens}
    step = replace(last, messages=(*last.messages[:-1], answer))
    return episode.replace(steps=(episode.steps[0], step))


def test_turns_that_continue_each_other_are_one_record(tmp_path: Path) -> None:
    (row,) = _rows(tmp_path / "a", talk())
    assert row["ids"] == [1, 2, 3, 4, 5, 6, 7]
    assert row["mask"] == [0, 0, 0, 1, 1, 0, 1]
    assert row["logprobs"] == [0.0, 0.0, 0.0, -0.5, -0.25, 0.0, -0.125]
    assert row["turns"] == [
        {"turn": 0, "begins": 3, "ends": 5, "reward": None},
        {"turn": 1, "begins": 6, "ends": 7, "reward": 1.0},
    ]
    assert (row["task"], row["reward"], row["segment"]) == ("mine/1", 1.0, 0)


def test_a_prompt_that_was_cut_begins_a_new_record(tmp_path: Path) -> None:
    first, second = _rows(tmp_path / "a", _with({"prompt_ids": [1, 9], "ids": [7]}))
    assert first["ids"] == [1, 2, 3, 4, 5] and second["ids"] == [1, 9, 7]
    assert (second["segment"], second["mask"]) == (1, [0, 0, 1])
    assert second["logprobs"] is None  # unknown, which is not 0
    assert [t["turn"] for t in second["turns"]] == [1]


def test_turns_without_ids_are_counted_and_never_tokenised(tmp_path: Path) -> None:
    written = export([_with({"ids": [7]})], tmp_path / "a")
    assert written.records == 1 and written.omitted == ("1 turns hold no ids of prompt and answer",)
    with pytest.raises(UsageError, match="no turn of these episodes holds token ids"):
        export([talk(tokens=False)], tmp_path / "b")
    assert not (tmp_path / "b").exists()
