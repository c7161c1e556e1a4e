"""Replaying the authors' Python log: the runner's feedback, and the whole log in a sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from intercode.core import logs
from intercode.core.types import Score
from intercode.environments.base.replay.rules import LOG_RULES, replay_rules_for
from intercode.evaluation.replay import log_replay
from intercode.paper.replay.python import AuthorsPythonRules, feedback_observation

TESTS = ("assert f(1) == 1", "assert f(2) == 2", "assert f(3) == 3")
PARTIAL = Score(1 / 3, details={"raised": [1, 2]})
DICT = "{'output': '', 'error': ''}"


@pytest.mark.parametrize(
    ("recorded", "score", "expected"),
    [
        (
            "Failed 1/3 Test Cases. Please try again.",
            PARTIAL,
            "Failed 2/3 Test Cases. Please try again.",
        ),
        (
            "Failed Test Case: assert f(9) == 1\nPlease try again.",
            PARTIAL,
            "Failed Test Case: assert f(2) == 2\nPlease try again.",
        ),
        (
            "Test case did not pass. Please try again.",
            PARTIAL,
            "Test case did not pass. Please try again.",
        ),
        (DICT, PARTIAL, "Test case did not pass. Please try again."),
        (DICT, Score(1.0, details={"raised": [0]}), "seen"),
        (DICT, Score(0.0, details={"raised": []}), "seen"),
        (DICT, Score(0.0), "seen"),
    ],
)
def test_the_feedback_of_the_authors_runner(recorded: str, score: Score, expected: str) -> None:
    assert feedback_observation(recorded, "seen", score, TESTS) == expected


def test_the_record_names_the_task_by_its_published_number(recorded_dir: Path) -> None:
    episodes = logs.load_log(recorded_dir / "python" / "ic_python_multiturn_gpt-3.5_7_turns.json")
    assert all(e.task == f"mbpp/{e.index + 1}" for e in episodes)
    assert isinstance(replay_rules_for(episodes[0]), AuthorsPythonRules)
    assert LOG_RULES.load("authors.python") is AuthorsPythonRules


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.namespace_only("replays the same episodes on every back end")
def test_the_authors_log_is_reproduced(
    recorded_dir: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rewards and observations were equal when measured; a later Python may word an error
    otherwise."""
    monkeypatch.setenv("INTERCODE_DATA", str(data_dir))
    (report,) = log_replay.replay_logs(
        [recorded_dir / "python"], log_replay.ReplayOptions(image="host")
    )
    shares = report.shares()
    assert (report.episodes, shares["steps"]) == (117, 430)
    assert report.recorded_success == report.replayed_success == 69
    assert shares["rewards"] == 1.0
    assert float(shares["observations"] or 0) >= 0.97
