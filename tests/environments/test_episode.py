"""An episode is an object: it is played, scored, saved and forked without Gymnasium's methods."""

from __future__ import annotations

from typing import Any

import pytest

import intercode
from intercode.core.errors import EnvironmentStateError
from intercode.core.types import Step
from intercode.environments import Episode

pytestmark = pytest.mark.sandbox
ACTIONS = {
    "bash": "echo a > /tmp/a; echo done",
    "ctf": "echo a > /tmp/a; echo done",
    "python": "print('done')",
    "sql": "SELECT 'done'",
}


@pytest.mark.parametrize("name", ACTIONS)
def test_an_episode_is_played_without_gymnasium(name: str) -> None:
    with intercode.make(name) as env:
        env.reset(options={"task": 0})
        episode: Episode = env.episode
        assert (episode.task.id, episode.index, episode.turns) == (env.dataset.tasks[0].id, 0, 0)
        result = episode.execute(ACTIONS[name])
        assert "done" in result.observation and isinstance(result, Step)
        assert episode.last_result is not None and "done" in episode.last_observation
        (other,) = episode.fork()
        assert (other.turns, other.actions) == (1, episode.actions) and other.env is not env
        other.env.close()
        assert episode.running and episode.score() == env.score()
        assert episode.finish().terminated and not episode.running
        with pytest.raises(EnvironmentStateError):
            episode.execute(ACTIONS[name])


def test_a_reset_begins_another_episode_and_ends_the_last() -> None:
    with intercode.make("bash") as env:
        env.reset(options={"task": 0})
        first = env.episode
        env.step("echo a")
        env.reset(options={"task": 0})
        assert env.episode is not first and env.episode.turns == 0
        assert first.turns == 1 and first.workspace is None
        with pytest.raises(EnvironmentStateError, match="no open episode"):
            first.score()


def test_before_the_first_reset_there_is_no_episode() -> None:
    with intercode.make("bash") as env:
        attributes: Any = ("episode", "task", "brief")
        for name in attributes:
            with pytest.raises(EnvironmentStateError, match="no episode yet"):
                getattr(env, name)


def test_an_observation_beyond_the_space_keeps_its_end_and_counts_what_is_left_out() -> None:
    with intercode.make("bash", limits={"output": "8m"}) as env:
        env.reset(options={"task": 0})
        result = env.execute("head -c 3000000 /dev/zero | tr '\\0' a; echo; echo end")
        assert env.observation_space.contains(result.observation)
        assert result.observation.endswith("a\nend\n")
        assert f"[... {result.omitted_bytes} bytes left out ...]" in result.observation
        kept = len(result.observation) - len(f"\n[... {result.omitted_bytes} bytes left out ...]\n")
        assert kept + result.omitted_bytes == 3_000_005
