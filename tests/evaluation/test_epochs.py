"""Several epochs of each task: each is played once, with its seed, in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from intercode.core import trajectories
from intercode.core.config import EvalConfig
from intercode.core.types import Trajectory
from intercode.evaluation.evaluate.plan import make_plan
from intercode.evaluation.evaluate.run import evaluate
from intercode.models import ScriptedModel
from intercode.results.statistics.metrics import drop_retried_failures

pytestmark = pytest.mark.sandbox
Read = Callable[[Path], list[Trajectory]]


def test_every_task_is_played_once_in_every_epoch(
    squares: str, tmp_path: Path, episodes_of: Read
) -> None:
    config = EvalConfig(squares, "gold", limit=3, epochs=2, parallel=3, out=tmp_path / "run")
    found = episodes_of(evaluate(config, quiet=True))
    assert Counter((t.index, t.epoch) for t in found) == dict.fromkeys(
        [(i, e) for i in range(3) for e in range(2)], 1
    )
    assert all(t.success for t in found)
    evaluate(config, quiet=True)
    assert len(episodes_of(tmp_path / "run")) == 6
    evaluate(replace(config, epochs=3, limit=4), quiet=True)  # extends both epochs and tasks
    found = episodes_of(tmp_path / "run")
    assert sorted((t.index, t.epoch) for t in found) == [(i, e) for i in range(4) for e in range(3)]


def test_missing_episodes_are_identified_by_task_and_epoch(squares: str, tmp_path: Path) -> None:
    config = EvalConfig(squares, "gold", limit=2, epochs=2, out=tmp_path / "run")
    plan = make_plan(config)
    base = Trajectory("sums/0", 0, "q", (), end="solved")
    for episode in (
        base.replace(epoch=1),
        base.replace(epoch=1),  # on disk twice, counted once
        base.replace(end="error", error="sandbox lost"),
        # a branch does not count as an episode of the run
        base.replace(task="sums/1", index=1, parent="x"),
        base.replace(task="sums/5", index=5),  # not among the selected tasks
    ):
        trajectories.append_trajectory(plan.trajectories_file, episode)
    assert [(s.index, s.epoch) for s in plan.pending_samples()] == [(0, 0), (1, 0), (1, 1)]
    assert [tuple(key) for key in plan.read_state().finished] == [("sums/0", 1)]
    assert plan.episode_errors() == ["sandbox lost"]
    assert plan.pending_tasks() == [0, 1]


def test_a_failure_in_one_epoch_does_not_affect_another() -> None:
    failed = Trajectory("t", 0, "q", (), end="error", error="down")
    assert (
        drop_retried_failures([failed, failed.replace(epoch=1, end="solved", error=None)])[0]
        is failed
    )
    assert (
        len(drop_retried_failures([failed, failed, failed.replace(end="solved", error=None)])) == 1
    )


def test_seeds_are_of_task_and_epoch(squares: str, tmp_path: Path) -> None:
    plan = make_plan(EvalConfig(squares, "gold", epochs=3, seed=100, out=tmp_path / "run"))
    seeds = [plan.episode_seed(sample) for sample in plan.samples]
    assert seeds == list(range(100, 124))
    plan = make_plan(EvalConfig(squares, "gold", out=tmp_path / "run"))
    assert {plan.episode_seed(sample) for sample in plan.samples} == {None}


def test_the_shuffled_order_is_the_seed_s_and_changes_no_result(
    squares: str, tmp_path: Path, episodes_of: Read
) -> None:
    config = EvalConfig(squares, "gold", epochs=2, shuffle=True, seed=3, parallel=1)
    order = [(s.index, s.epoch) for s in make_plan(config).samples]
    assert order == [(s.index, s.epoch) for s in make_plan(config).samples]
    assert order != sorted(order) and len(set(order)) == 16
    assert order != [(s.index, s.epoch) for s in make_plan(replace(config, seed=4)).samples]
    shuffled = episodes_of(evaluate(replace(config, out=tmp_path / "a"), quiet=True))
    assert [(t.index, t.epoch) for t in shuffled] == order
    plain = episodes_of(
        evaluate(replace(config, shuffle=False, parallel=4, out=tmp_path / "b"), quiet=True)
    )

    def results(found: list[Trajectory]) -> list[object]:
        ordered = sorted(found, key=lambda t: (t.index, t.epoch))
        return [(t.task, t.epoch, t.end, [s.observation for s in t.steps]) for t in ordered]

    assert results(shuffled) == results(plain)


def test_recorded_actions_are_those_of_the_same_epoch(
    squares: str, tmp_path: Path, episodes_of: Read
) -> None:
    asked: Counter[str] = Counter()

    def answers(messages: list) -> str:
        asked["n"] += 1
        return f"```bash\necho {asked['n']}\n```"

    config = EvalConfig(
        squares, "single-turn", model="m", limit=2, epochs=2, parallel=1, out=tmp_path / "a"
    )
    evaluate(config, model=ScriptedModel(answers), quiet=True)
    replayed = EvalConfig(
        squares,
        "replay",
        limit=2,
        epochs=3,
        out=tmp_path / "b",
        agent_options={"actions": str(tmp_path / "a")},
    )
    found = episodes_of(evaluate(replayed, quiet=True))
    said = {(t.index, t.epoch): t.steps[0].action for t in found}
    assert said == {
        (0, 0): "echo 1",
        (1, 0): "echo 2",
        (0, 1): "echo 3",
        (1, 1): "echo 4",
        # an epoch that was not recorded gets the first one's actions
        (0, 2): "echo 1",
        (1, 2): "echo 2",
    }
