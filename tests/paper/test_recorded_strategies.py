"""The authors' strategies against an endpoint that answers from their logs."""

from __future__ import annotations

import json
from itertools import zip_longest
from pathlib import Path

import pytest

from intercode.agents import open_agent
from intercode.core.types import Score, Step
from intercode.models import open_model
from intercode.paper.feedback import parse_action_original
from support.descriptions import brief as make_brief
from support.recorded_endpoint import FORCED, RecordedEndpoint


@pytest.mark.parametrize(
    ("log", "name", "environment"),
    [
        ("bash/ic_bash_react_10_turns_fs_3.json", "react", "bash"),
        ("bash/ic_bash_plan_solve_fs_4.json", "plan-solve", "bash"),
    ],
)
def test_the_authors_strategies_play_their_logs(
    recorded_dir: Path, log: str, name: str, environment: str
) -> None:
    data = json.loads((recorded_dir / log).read_text())
    with RecordedEndpoint(recorded_dir / log) as server:
        model = open_model("recorded", server.base_url)
        agent = open_agent(name, {"feedback": "original"}, model=model)
        for row in data.get("logs", data).values():
            history = row["turn_history"]
            agent.start(make_brief(str(row["task_id"]), row["query"], environment))
            played: list[str | None] = []
            feedback = None
            # the authors' loop sometimes ends too early
            while len(played) < len(history["actions"]):
                if (move := agent.act(feedback)) is None:
                    break
                score = Score(history["rewards"][len(played)] or 0.0)
                feedback = Step("", history["observations"][len(played)], score=score)
                played.append(move.action)
                if move.action == "submit":
                    break
            assert played == [
                executed(action) if name == "react" else action
                for action, thought in zip_longest(history["actions"], history.get("thoughts", ()))
                if thought != FORCED
            ]


def executed(action: str) -> str | None:
    """Return what the authors' ReAct runner executes of a recorded Bash action."""
    return parse_action_original(action, "bash")[0]
