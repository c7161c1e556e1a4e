"""examples/learn: each kind of credit trains, a run that was interrupted goes on, and the figures
are drawn. What is learned is measured by hand (docs/learning.md)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("torch", reason="make training")
FOLDER = Path(__file__).parent.parent / "examples" / "learn"
pytestmark = [pytest.mark.sandbox, pytest.mark.slow]


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(FOLDER))
    import training

    monkeypatch.setattr(training, "GROUPS", 1)
    monkeypatch.setattr(training, "TEST_SEEDS", range(1_000_000, 1_000_002))
    yield training
    for name in ("training", "player", "curves"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("credit", ["final", "delta", "fork"])
def test_a_run_goes_on_and_its_figure_shows_it(
    training: ModuleType, credit: str, tmp_path: Path
) -> None:
    run = tmp_path / "five-turns-0"
    first = training.train(run, credit, 0, 8, "1..2", 5, imitated=2)
    assert set(first) == {
        f"{what} {when}"
        for what in ("greedy", "sampled", "other wording", "longer trails")
        for when in ("before", "after")
    }
    (run / "result.json").unlink()
    after = training.train(run, credit, 0, 40, "1..2", 5, imitated=2)
    assert {k: v for k, v in after.items() if "before" in k} == {
        k: v for k, v in first.items() if "before" in k
    }
    rows = [json.loads(line) for line in (run / "curve.jsonl").read_text().splitlines()]
    assert len(rows) > 1 and sum(row["episodes"] for row in rows) >= 40
    later = [row["episodes"] - row["whole"] for row in rows]  # forks of later turns
    assert any(later) == (credit == "fork") and all(row["solved"] <= row["whole"] for row in rows)
    import curves

    curves.WINDOW = 8
    played = [count for count, _ in curves.read_curve(run)]
    assert played == list(accumulate(row["episodes"] for row in rows))
    curves.draw(tmp_path / "credit.svg", tmp_path, {"five-turns": "final reward"})
    assert "<svg" in (tmp_path / "credit.svg").read_text()


def test_training_and_test_share_no_task(training: ModuleType) -> None:
    import player

    def tasks(seeds: range, wording: int) -> set[tuple[str, str | None]]:
        found = set()
        with player.open_env("1..2", 5) as env:
            for seed in seeds:
                query = player.begin(env, seed, wording).query
                found.add((query, env.task.gold))
        return found

    train = tasks(range(30), training.TRAIN_WORDING)
    test = tasks(range(1_000_000, 1_000_030), training.TRAIN_WORDING)
    assert len(train) == len(test) == 30 and not train & test


def test_a_seed_that_could_train_on_tasks_of_the_test_is_refused(
    training: ModuleType, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="seed 10 "):
        training.train(tmp_path, "final", 10, 8, "1..2", 5)
