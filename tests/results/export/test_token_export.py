"""Token-level records: the engine's own ids, and which episodes are left out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from intercode.cli import main
from intercode.core import trajectories
from intercode.core.errors import UnknownNameError, UsageError
from intercode.core.types import Trajectory, Usage
from intercode.results.export.tokens import export
from intercode.results.report import build
from support.talks import META, talk
from support.token_episodes import token_calls, token_episode


def _rows(path: Path, *episodes: Trajectory) -> list[dict[str, Any]]:
    export(episodes, path)
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_turns_that_continue_each_other_are_one_record(tmp_path: Path) -> None:
    uncounted = tuple(replace(step, usage=Usage()) for step in talk().steps)
    (row,) = _rows(tmp_path / "a", talk().replace(steps=uncounted))
    assert row["ids"] == [1, 2, 3, 4, 5, 6, 7]
    assert row["mask"] == [0, 0, 0, 1, 1, 0, 1]
    assert row["logprobs"] == [0.0, 0.0, 0.0, -0.5, -0.25, 0.0, -0.125]
    assert row["turns"] == [
        {"turn": 0, "begins": 3, "ends": 5, "reward": None},
        {"turn": 1, "begins": 6, "ends": 7, "reward": 1.0},
    ]
    assert (row["task"], row["reward"], row["segment"], row["shared"]) == ("mine/1", 1.0, 0, 0)


def test_a_hidden_history_begins_a_new_record(tmp_path: Path) -> None:
    calls = token_calls()[:2]
    del calls[1]["prompt_ids"][5], calls[0]["logprobs"], calls[1]["logprobs"]
    hidden = {1: {"context": {"history": {"hidden": 1}}}}
    first, second = _rows(tmp_path / "a", token_episode(calls, steps=hidden))
    assert first["ids"] == calls[0]["prompt_ids"] + calls[0]["ids"]
    assert (second["segment"], second["shared"]) == (1, 5)
    assert second["logprobs"] is None  # unknown, which is not 0
    assert [t["turn"] for t in second["turns"]] == [1]


def test_refused_episodes_are_left_out_and_counted(tmp_path: Path) -> None:
    calls = token_calls()
    calls[1]["finish"] = "length"
    cut = token_episode(calls, id="cut")
    written = export([cut, token_episode(), talk(tokens=False)], tmp_path / "a")
    assert written.records == 1
    assert written.omitted[:2] == (
        "1 episodes hold no token ids",
        "1 episodes with token ids are refused for training",
    )
    assert "reply-cut in 1 of them, such as cut, turn 1, position 27" in written.omitted[2]
    with pytest.raises(UsageError, match=r"no episode is left; .*; reply-cut in 1"):
        export([cut], tmp_path / "b")
    assert export([cut], tmp_path / "c", allow="temperature, reply-cut").records == 1
    with pytest.raises(UnknownNameError, match="reply-cut"):
        export([cut], tmp_path / "b", allow="reply-cuts")
    with pytest.raises(UsageError, match="no turn of these episodes holds token ids"):
        export([talk(tokens=False)], tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_only_lines_of_the_export_are_counted_as_shared(tmp_path: Path) -> None:
    calls = token_calls()
    calls[2]["finish"] = "length"
    cut = token_episode(calls)
    forks = [token_episode(id=name, parent="e", branched_at=1) for name in "fg"]
    first, second = _rows(tmp_path / "a", cut, *forks)
    assert first["shared"] == 0 < second["shared"]
    assert (first["episode"], second["episode"]) == ("f", "g")


def test_the_report_of_a_run_counts_refused_episodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trajectories.write_run_metadata(tmp_path, META)
    calls = token_calls()
    del calls[2]["prompt_ids"][3]
    for number, given in enumerate((calls, None)):
        episode = token_episode(given, index=number, id=f"e{number}", run=META)
        trajectories.append_trajectory(tmp_path / trajectories.TRAJECTORIES_FILE, episode)
    notes = [note for table in build([tmp_path]) for note in table.notes]
    assert any(n.startswith("1 episodes with token ids are refused") for n in notes)
    assert any("prompt-truncated in 1 of them, such as e0, turn 2, position 3" in n for n in notes)
    words = ["export", str(tmp_path), "--to", "tokens", "--out", str(tmp_path / "a.jsonl")]
    assert main(words) == 0 and "1 episodes with token ids are refused" in capsys.readouterr().err
    assert main([*words, "--allow", "prompt-truncated"]) == 0
    assert "wrote 3 records" in capsys.readouterr().err  # the cut prompt begins another branch
