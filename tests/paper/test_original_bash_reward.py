"""The Bash reward of the authors: their arithmetic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from intercode.core.types import State, Task
from intercode.paper.bash.reward import original

TASK = Task("t", "q")


def state(output: str | None, *status: tuple[str, str], **sums: str) -> State:
    return State(output, status=status, checksums={f"/{k}": v for k, v in sums.items()})


A, B, M = ("/a", "??"), ("/b", "A"), ("/m", "M")


ORIGINAL = {
    "all equal": (state("some words"), state("some words"), 0.33, 0.33, 0.33),
    "no vocabulary, equal": (state("1 2"), state("1 2"), 0.33, 0.33, 0.33),
    "no vocabulary, different": (state("1 2"), state("1 3"), 0.33, 0.33, 0.0),
    "gold was malformed": (state("some words"), state(None), 0.33, 0.33, 0.0),
    "other words": (state("some words"), state("none here"), 0.33, 0.33, 0.0),
    "one missed": (state(""), state("", A), 0.05, 0.33, 0.33),
    "one extra": (state("", A), state(""), 0.05, 0.33, 0.33),
    "one missed, one extra": (state("", A), state("", B), 0.0, 0.33, 0.33),
    "same path, other code": (state("", ("/a", "A")), state("", A), 0.0, 0.33, 0.33),
    "same content": (state("", A, a="1"), state("", A, a="1"), 0.33, 0.33, 0.33),
    "other content": (state("", A, a="1"), state("", A, a="2"), 0.33, 0.0, 0.33),
    "half": (state("", A, B, a="1", b="1"), state("", A, B, a="1", b="2"), 0.33, 0.17, 0.33),
    "modified is not compared": (state("", M, m="1"), state("", M, m="2"), 0.33, 0.33, 0.33),
}


@pytest.mark.parametrize("name", ORIGINAL)
def test_the_original_arithmetic(name: str) -> None:
    agent, gold, files, content, answer = ORIGINAL[name]
    score = original(TASK, agent, gold)
    assert score.parts == {
        "file_diff": files,
        "file_changes": content,
        "answer_similarity": answer,
    }
    assert score.value == pytest.approx(0.01 + files + content + answer, abs=1e-12)
    assert score.success == (
        name in ("all equal", "no vocabulary, equal", "same content", "modified is not compared")
    )


def test_the_details_list_missed_changes() -> None:
    details = original(TASK, state("", A), state("", B)).details
    assert (details["missed"], details["extra"]) == ([B], [A])


def ratio_for(part: float) -> tuple[int, int]:
    """Return (correct, all) whose share of .33 gives a recorded part after rounding."""
    for total in range(1, 60):
        for correct in range(total + 1):
            if round(0.33 * (correct / total), 2) == part:
                return correct, total
    raise AssertionError(f"no share rounds to {part}")


def states_of(row: dict[str, Any]) -> tuple[State, State]:
    """Return end states that can lead to a reference row: its differences, and common entries."""
    extra, missed = ([(str(p), str(c)) for p, c in row[k]] for k in ("extra", "miss"))
    part = row["parts"]["file_changes"]
    correct, total = (0, 0) if part == 0.33 else ratio_for(part)
    common = [(f"/common/{i}", "??") for i in range(total)]
    sums = {path: "same" for path, _ in common}
    other = {**sums, **{path: "other" for path, _ in common[correct:]}}
    return (
        State(row["obs"], status=(*extra, *common), checksums=sums),
        State(row["gold_obs"], status=(*missed, *common), checksums=other),
    )


def test_every_row_of_the_reference(reference_dir: Path) -> None:
    checked = 0
    for file in sorted((reference_dir / "bash").glob("*.json")):
        for row in json.loads(file.read_text()):
            if row["reward"] is None or not row["parts"]:
                continue
            score = original(TASK, *states_of(row))
            where = f"{file.name}: task {row['task']}: {row['action'][:60]}"
            assert dict(score.parts) == row["parts"], where
            assert score.value == pytest.approx(row["reward"], abs=1e-9), where
            checked += 1
    assert checked > 1000
