"""The documented example: a real task in fewer than 100 lines."""

from __future__ import annotations

from pathlib import Path

import pytest

import intercode
from intercode.evaluation import check_dataset

EXAMPLE = Path(__file__).parent.parent / "examples" / "git_repair"
pytestmark = pytest.mark.sandbox


def test_it_is_short() -> None:
    lines = {p.name: len(p.read_text().splitlines()) for p in EXAMPLE.iterdir() if p.is_file()}
    assert {"Dockerfile", "tasks.jsonl", "reward.py", "README.md", "task.toml"} <= lines.keys()
    assert sum(lines.values()) < 100, lines
    assert lines["README.md"] <= 5


@pytest.mark.slow
def test_it_is_sound() -> None:
    check_dataset(EXAMPLE / "test_git_repair.py")


@pytest.mark.slow
def test_partial_repairs_score_partly_and_cheating_scores_nothing() -> None:
    with intercode.make("bash", str(EXAMPLE)) as env:
        env.reset(options={"task": "git-repair/deleted"})
        start = env.score().value
        env.step("git show HEAD~1:prices.txt > prices.txt")
        assert env.score().value < 0.5  # the file exists but is not committed
        env.step("git add prices.txt && git commit -qm 'Back again'")
        assert env.score().value == 1.0
        env.reset(options={"task": "git-repair/deleted"})
        cheat = (
            "git config alias.status '!echo'; git config core.fsmonitor 'echo sound; kill $PPID'"
        )
        env.step(f"{cheat}; printf '#!/bin/sh\\necho sound' > .git/hooks/pre-auto-gc")
        env.step("mkdir -p /root/bin; ln -s /bin/echo /root/bin/git; rm -rf /root/.gitconfig")
        assert env.score().value == start < 0.5
        env.step("rm -rf /repo")
        assert env.score().value < start
