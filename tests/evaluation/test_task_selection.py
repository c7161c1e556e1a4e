"""Which tasks a run plays."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import intercode
from intercode.cli import main
from intercode.core.errors import ConfigError, UnknownNameError, UsageError
from intercode.core.types import Dataset, Task
from intercode.evaluation.evaluate.task_selection import select_tasks

SIZES = {"easy": 40, "hard": 20, "medium": 37, "extra": 3}


def dataset() -> Dataset:
    levels = [level for level, size in SIZES.items() for _ in range(size)]
    tasks = [Task(f"t/{n}", "q", hardness=level, group="one") for n, level in enumerate(levels)]
    return Dataset("t", "sql", tuple(tasks))


def test_ids_positions_and_ranges() -> None:
    assert select_tasks(dataset(), ["2-4", "t/9", "4", "7"]) == (2, 3, 4, 7, 9)
    assert select_tasks(dataset(), ["2-9"], limit=2) == (2, 3)
    assert len(select_tasks(dataset(), [])) == 100
    with pytest.raises(UsageError, match="task 98-100 is out of range: t has 100"):
        select_tasks(dataset(), ["98-100"])
    with pytest.raises(UsageError, match="4-2 of tasks is empty: write 2-4"):
        select_tasks(dataset(), ["4-2"])
    message = "unknown task of t 't/1-2'; it has 100, such as .*; or give a position, 0 to 99"
    with pytest.raises(UnknownNameError, match=message):
        select_tasks(dataset(), ["t/1-2"])


def test_a_sample_is_stratified_seeded_and_part_of_a_larger_one() -> None:
    tasks = dataset()
    small, large = (select_tasks(tasks, [], sample=n, seed=7) for n in (10, 50))
    assert len(small) == 10 and set(small) < set(large) and small == tuple(sorted(small))
    levels = Counter(tasks.tasks[n].hardness for n in large)
    assert all(abs(levels[level] - size / 2) <= 1 for level, size in SIZES.items())
    assert select_tasks(tasks, [], sample=10, seed=7) == small
    assert select_tasks(tasks, [], sample=10, seed=8) != small
    assert select_tasks(tasks, ["0-4"], sample=99) == (0, 1, 2, 3, 4)


def test_many_small_strata_do_not_displace_a_large_one() -> None:
    names = ["large"] * 90 + [f"small {n}" for n in range(10)]
    tasks = Dataset("t", "bash", tuple(Task(f"t/{n}", "q", group=g) for n, g in enumerate(names)))
    for seed in range(50):
        assert abs(sum(n < 90 for n in select_tasks(tasks, [], sample=50, seed=seed)) - 45) < 2


def test_every_task_is_as_likely_as_any_other() -> None:
    """Also those of a small stratum: 100 of 400 samples of 25 should have each task."""
    tasks = dataset()
    counts = Counter(
        n for seed in range(400) for n in select_tasks(tasks, [], sample=25, seed=seed)
    )
    assert min(counts[n] for n in range(100)) > 60 and max(counts.values()) < 140


@pytest.mark.sandbox
def test_a_run_of_a_sample_is_extended(
    tmp_path: Path, squares: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["eval", squares, "--agent", "gold", "--out", str(tmp_path / "run"), "--sample"]
    assert main([*words, "2"]) == 0
    assert "a sample of 2 of 8 tasks" in capsys.readouterr().err
    first = {t.task for t in intercode.load_run(tmp_path / "run").episodes}
    assert main([*words, "5"]) == 0
    assert "2 of 5 episodes are finished already" in capsys.readouterr().err
    assert first < {t.task for t in intercode.load_run(tmp_path / "run").episodes}
    with pytest.raises(ConfigError, match="sample and limit exclude each other"):
        intercode.evaluate(squares, "gold", sample=2, limit=2)
