"""Our prompts contain no task, and a prompt with a task would be found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from intercode import datasets
from intercode.cli import main
from intercode.core.errors import DataError
from intercode.evaluation.check.prompt_leaks import find_leaks, packaged_prompts


def test_a_planted_task_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
    rows = [{"query": "Count the  blue widgets", "gold": ["ls", "widgets --count=blue"], "id": 3}]
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "rows.json").write_text(json.dumps({"tasks": rows, "more": "of the same"}))
    planted = datasets.load("starter").tasks[0].query
    prompts = {
        "a.txt": f"For example:\n  {planted}",
        "b.txt": "count THE blue\n widgets with ls of the same",
        "c.txt": "nothing of it",
    }
    report = find_leaks(prompts, tmp_path / "set")
    found = {(leak.prompt, leak.phrase) for leak in report.leaks}
    assert found == {
        ("a.txt", " ".join(planted.split()).casefold()),
        ("b.txt", "count the blue widgets"),
    }
    assert report.sources[str(tmp_path / "set" / "rows.json")] == 2
    (tmp_path / "set" / "rows.json").write_text("{")
    with pytest.raises(DataError, match=r"rows\.json"):
        find_leaks(prompts, tmp_path / "set")


def test_our_prompts_hold_no_starter_task(capsys: pytest.CaptureFixture[str]) -> None:
    assert packaged_prompts()
    assert main(["check", "--prompts"]) == 0
    assert "no leaks" in capsys.readouterr().out


@pytest.mark.nl2bash
def test_our_prompts_hold_no_task_of_the_data(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERCODE_DATA", str(data_dir))
    report = find_leaks()
    assert report.leaks == ()
    assert report.sources["nl2bash"] > 300 and len(report.sources) > 2
