"""A human as an agent, line by line."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from intercode.agents import AGENTS, open_agent
from intercode.agents.base import Step
from intercode.agents.baselines import HumanAgent
from intercode.core.errors import UsageError
from support.descriptions import brief as make_brief

BRIEF = make_brief("t/1", "Print five.", "bash", notes="Be quick.")


def reading(*lines: str) -> tuple[HumanAgent, list[str]]:
    left, shown = iter(lines), list[str]()

    def read(prompt: str, left: Iterator[str] = left) -> str:
        for line in left:
            return line
        raise EOFError

    return HumanAgent(read=read, show=shown.append), shown


def test_a_human_has_the_interface_of_agents() -> None:
    assert "human" in AGENTS
    assert isinstance(open_agent("human"), HumanAgent)


def test_the_typed_text_is_the_action() -> None:
    agent, shown = reading("", "  ", "ls  -l", "submit")
    agent.start(BRIEF)
    first = agent.act(None)
    assert first is not None and (first.action, first.actor) == ("ls  -l", "human")
    second = agent.act(Step("", "a\nb\n", timed_out=True))
    assert second is not None and second.action == "submit"
    assert shown == ["[t/1] Print five.\nBe quick.", "a\nb\n(stopped at the time limit)"]
    assert agent.act(Step("", "")) is None


def test_one_terminal_serves_one_episode() -> None:
    errors: list[UsageError] = []

    def start() -> None:
        try:
            open_agent("human").start(BRIEF)
        except UsageError as e:
            errors.append(e)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert len(errors) == 1 and "intercode play" in str(errors[0])
