"""Capture-the-Flag tasks in a user's file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import intercode
from intercode.datasets import load


@pytest.mark.sandbox
def test_a_file_with_flags_is_played_as_capture_the_flag(tmp_path: Path) -> None:
    (tmp_path / "box" / "ctf" / "here").mkdir(parents=True)
    (tmp_path / "box" / "ctf" / "here" / "f").write_text("flag{it is}")
    rows = [
        {"query": "Find it.", "flag": "flag{it is}", "files": ["box"], "cwd": "/ctf/here"},
        {"query": "Find two.", "flag": "flag{two}", "gold": "echo 'flag{two}'"},
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    dataset = load(str(path))
    assert dataset.environment == "ctf"
    assert [t.gold for t in dataset.tasks] == ["submit flag{it is}", "echo 'flag{two}'"]
    with intercode.make("ctf", dataset) as env:
        env.reset(options={"task": 0})
        assert env.step("cat f")[0] == "flag{it is}"
        assert env.step("submit flag{it is}")[1:3] == (1.0, True)


def test_a_file_without_flags_is_not(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({"query": "q", "gold": "true"}))
    dataset = load(str(path))
    assert dataset.environment == "bash" and dataset.tasks[0].flag is None
