"""The figures of small episodes with known results."""

from __future__ import annotations

import pytest

from intercode.core.types import Score, Step, Trajectory
from intercode.results.statistics import metrics


def _episode(*steps: Step, task: str = "a", **more: object) -> Trajectory:
    return Trajectory(task=task, index=0, query="", steps=steps).replace(**more)


GOOD = Step("ls", "x", score=Score(1.0))
BAD = Step("lss", "no", valid=False, score=Score(0.3))
TALK = Step("well", "retry", executed=False, valid=None, score=Score(0.0))
STALE = Step("well", "retry", executed=False, valid=True, score=Score(0.0))
BLOCKED = Step("blocked", "", executed=False, valid=None, score=Score(0.0))
SUBMIT = Step("submit", "x", valid=True, score=Score(0.5))


def test_success_and_first_turn() -> None:
    episodes = [_episode(BAD, GOOD), _episode(GOOD, task="b"), _episode(BAD, task="c")]
    assert metrics.success_rate(episodes) == pytest.approx(200 / 3)
    assert metrics.first_turn_rate(episodes) == pytest.approx(100 / 3)
    assert metrics.mean_turns(episodes) == pytest.approx(4 / 3)
    assert metrics.first_turn_rate([_episode()]) == 0.0


def test_without_data_there_is_no_figure() -> None:
    assert metrics.success_rate([]) is None
    assert metrics.mean_turns([]) is None
    assert metrics.error_rate([]) is None


@pytest.mark.parametrize(
    ("steps", "as_recorded", "true"),
    [
        ((GOOD, BAD), 1 / 2, 1 / 2),
        ((GOOD, TALK), 1 / 2, 1 / 2),
        ((GOOD, STALE), 0.0, 1 / 2),
        ((BAD, BLOCKED), 1.0, 1.0),
        ((BLOCKED,), None, None),
        ((Step("x", "", valid=None),), None, None),
        ((), None, None),
    ],
)
def test_error_share(
    steps: tuple[Step, ...], as_recorded: float | None, true: float | None
) -> None:
    assert metrics.error_share(_episode(*steps)) == as_recorded
    assert metrics.true_error_share(_episode(*steps)) == true


def test_a_forced_submit_is_in_error_but_not_in_turns() -> None:
    episode = _episode(BAD, STALE, SUBMIT, run={"turns_taken": 2})
    assert metrics.mean_turns([episode]) == 2.0
    assert metrics.error_share(episode) == pytest.approx(1 / 3)
    assert metrics.true_error_share(episode) == 1.0


def test_error_rate_is_a_mean_over_episodes_not_over_turns() -> None:
    assert metrics.error_rate([_episode(BAD), _episode(GOOD, GOOD, GOOD)]) == 50.0


def test_episodes_with_errors_are_not_solved() -> None:
    broken = _episode(task="b", end="error", error="endpoint down")
    episodes = [_episode(GOOD), broken]
    assert metrics.success_rate(episodes) == metrics.first_turn_rate(episodes) == 50.0
    assert metrics.upper_bound(episodes) == 100.0 and metrics.upper_bound(episodes[:1]) is None
    assert metrics.mean_turns(episodes) == 1.0
    assert metrics.count_failed(episodes) == 1
    assert metrics.drop_retried_failures([broken, broken, *episodes]) == episodes
    assert metrics.drop_retried_failures([broken, _episode(GOOD, task="b")]) == [
        _episode(GOOD, task="b")
    ]


def test_groups_are_hardness_for_sql_and_file_systems_for_bash() -> None:
    both = {"group": "fs_1", "hardness": "easy"}
    assert metrics.group_of(_episode(**both)) == "fs_1"
    assert metrics.group_of(_episode(**both, run={"environment": "sql"})) == "easy"
    assert metrics.group_of(_episode(hardness="hard")) == "hard"
    assert metrics.split_episodes([_episode()], metrics.group_of) == {}
