"""Our prompts contain no task, and a prompt with a task would be found.

The demonstrations in the authors' prompts were tasks of the benchmark, and agents solved them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

import pytest

from intercode import datasets
from intercode.core.errors import DataError
from intercode_lab.contamination.dataset_texts import task_texts

SHORTEST = 12
"""Shorter phrases, counted in characters after normalising blanks, are in any text by chance."""


def packaged_prompts() -> dict[str, str]:
    folder = resources.files("intercode.agents").joinpath("prompts")
    prompts = {p.name: p.read_text(encoding="utf-8") for p in folder.iterdir()}
    return {name: text for name, text in prompts.items() if name.endswith(".txt")}


def find_leaks(
    prompts: Mapping[str, str], data: Path | None = None
) -> tuple[set[tuple[str, str]], dict[str, int]]:
    """Return the prompts that contain a phrase of a task, with it, and the number of phrases of
    each source."""
    texts = {name: _normalized(text) for name, text in prompts.items()}
    leaks, sizes = set(), {}
    for source, found in task_texts(data, {}):
        phrases = {p for text in found if len(p := _normalized(text)) >= SHORTEST}
        sizes[source] = len(phrases)
        leaks |= {(name, p) for name, text in texts.items() for p in phrases if p in text}
    return leaks, sizes


def _normalized(text: str) -> str:
    return " ".join(text.split()).casefold()


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
    found, sizes = find_leaks(prompts, tmp_path / "set")
    assert found == {
        ("a.txt", " ".join(planted.split()).casefold()),
        ("b.txt", "count the blue widgets"),
    }
    assert sizes[str(tmp_path / "set" / "rows.json")] == 2
    (tmp_path / "set" / "rows.json").write_text("{")
    with pytest.raises(DataError, match=r"rows\.json"):
        find_leaks(prompts, tmp_path / "set")


def test_our_prompts_hold_no_starter_task() -> None:
    assert packaged_prompts()
    leaks, sizes = find_leaks(packaged_prompts())
    assert not leaks and sizes["starter:bash"] > 50


@pytest.mark.nl2bash
def test_our_prompts_hold_no_task_of_the_data(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERCODE_DATA", str(data_dir))
    leaks, sizes = find_leaks(packaged_prompts())
    assert not leaks
    assert sizes["nl2bash"] > 300 and len(sizes) > 2
