"""Models play Python tasks: from a fenced answer to the share of passed hidden tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from intercode.core import trajectories
from intercode.core.config import EvalConfig
from intercode.core.types import Trajectory
from intercode.evaluation.evaluate.run import evaluate
from intercode.evaluation.replay import log_replay
from intercode.models import ScriptedModel

pytestmark = pytest.mark.sandbox

TASK = "starter/python/fair-split"
WRONG = (
    "Let me try.\n\n```python\ndef split(total, parts):\n    return [total // parts] * parts\n```"
)
TALK = "It has to differ by at most one. Let me think about that."
RIGHT = (
    "```py\ndef split(total, parts):\n    if parts < 1:\n        raise ValueError(parts)\n"
    "    each, more = divmod(total, parts)\n"
    "    return [each + 1] * more + [each] * (parts - more)\n"
    "\nsplit(10, 3)\n```"
)
REWARD = 0.4  # the wrong solution passes two of five tests


def played(out: Path, replies: Any, agent: str, **settings: Any) -> Trajectory:
    config = EvalConfig("starter:python", agent, model="m", tasks=(TASK,), out=out, **settings)
    found = evaluate(config, model=ScriptedModel(replies), quiet=True)
    (episode,) = trajectories.read_trajectories(found / trajectories.TRAJECTORIES_FILE)
    return episode


def test_try_again_until_every_test_passes(tmp_path: Path) -> None:
    seen: list[str] = []

    def answer(messages: list[Any]) -> str:
        seen[:] = [m["content"] for m in messages if m["role"] != "assistant"]
        return [WRONG, TALK, RIGHT][sum(m["role"] == "assistant" for m in messages)]

    episode = played(tmp_path / "run", answer, "try-again", max_turns=5)
    assert (episode.end, episode.success) == ("solved", True)
    assert [s.executed for s in episode.steps] == [True, False, True]
    assert [s.score_value for s in episode.steps] == [pytest.approx(REWARD), 0.0, 1.0]
    assert episode.steps[2].observation == "[4, 3, 3]\n"
    assert "by tests that you do not see" in seen[0]
    assert f"Reward: {REWARD}" in seen[2]
    (report,) = log_replay.replay_logs([tmp_path / "run"], log_replay.ReplayOptions())
    assert report.mismatches == []


def test_a_single_turn(tmp_path: Path) -> None:
    assert played(tmp_path / "a", [RIGHT], "single-turn").success
    episode = played(tmp_path / "b", [WRONG], "single-turn")
    assert (episode.turns, episode.score) == (1, pytest.approx(REWARD))


def test_gold_and_nothing(tmp_path: Path) -> None:
    found = {}
    for agent in ("gold", "noop"):
        config = EvalConfig("starter:python", agent, limit=4, out=tmp_path / agent, parallel=2)
        log = evaluate(config, quiet=True) / trajectories.TRAJECTORIES_FILE
        found[agent] = [t.score for t in trajectories.read_trajectories(log)]
    assert found == {"gold": [1.0] * 4, "noop": [0.0] * 4}
