"""The harness of golden outputs: what an episode is, and that what varies is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from frozen import golden
from frozen.episodes import essence, recorded_episodes
from frozen.items import all_items
from frozen.session import Item
from intercode.core import load_log, trajectories


def test_the_essence_differs_between_episodes() -> None:
    step: dict[str, Any] = {
        "action": "ls",
        "observation": "a",
        "reward": 1.0,
        "usage": {"requests": 1, "seconds": 2.0},
    }
    row = {"v": 2, "task": "t", "steps": [step, step], "end": "submitted", "run": {"profile": "x"}}
    found = essence(row)
    assert found["actions"] == ["ls", "ls"] and found["usage"]["requests"] == 2
    for key, value in (("action", "pwd"), ("observation", "b"), ("reward", 0.5)):
        assert essence({**row, "steps": [step, {**step, key: value}]}) != found
    for key, other in (("end", "turns"), ("task", "u"), ("run", {"profile": "y"})):
        assert essence({**row, key: other}) != found
    assert essence({**row, "v": 3, "seconds": 9.0}) == found


def test_a_log_of_the_authors_is_read_turn_by_turn(tmp_path: Path) -> None:
    turns = {"actions": ["ls"], "observations": ["a"], "rewards": [0.25], "valid_action": [True]}
    episode = {
        "environment": "ic_bash",
        "dataset": "nl2bash",
        "task_id": 0,
        "query": "list",
        "turn_history": turns,
        "summary": {"max_reward": 1, "turns_taken": 1},
    }
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"0": episode}))
    [recorded], [read] = list(recorded_episodes(path)), load_log(path)
    found = essence(trajectories.trajectory_to_row(read))
    assert recorded["query"] == "list"
    assert all(found[part] == recorded[part] for part in ("actions", "observations", "rewards"))


@pytest.mark.parametrize(("varying", "status"), [(0, 0), (1, 1)])
def test_values_that_vary_are_listed_and_few(
    varying: int, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = iter(range(2))

    def produce(names: list[str], _jobs: int) -> dict[str, Item]:
        number = next(rounds) * varying
        return {name: Item({"same": 1, "other": number}) for name in names}

    monkeypatch.setattr(golden, "produce", produce)
    assert golden.record(tmp_path, ["one"], 1, 2) == status
    assert (tmp_path / golden.VARYING_FILE).read_text() == "one: other\n" * varying


def test_the_items_cover_what_the_sweeps_must_keep() -> None:
    names = set(all_items())
    agents = ("try-again", "single-turn", "react", "plan-solve", "tool-calling", "more")
    tiers = ("namespace-1", "namespace-2", "chroot", "landlock", "docker", "podman", "remote")
    assert {f"messages-{agent}" for agent in agents} <= names
    assert {f"sandbox-{tier}-{way}" for tier in tiers for way in ("blocking", "async")} <= names
    assert {f"episodes-{n}" for n in ("inspect", "trl", "verifiers", "harbor")} <= names
    assert {"raised", "essence-shared", "essence-runs"} <= names
