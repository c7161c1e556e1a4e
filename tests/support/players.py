"""Scripted players and agents for tests of interactive play."""

from __future__ import annotations

from intercode.agents import open_agent
from intercode.agents.base import Agent, Step
from intercode.core.errors import ModelUnavailableError
from intercode.core.types import AgentOutput, Brief, Task
from intercode.evaluation.play.interactive_episode import InteractiveEpisode
from intercode.evaluation.play.player import Choice, Leader, Player
from intercode.models import ScriptedModel

TASKS = (Task("t/five", "Print five.", gold="echo five"), Task("t/f", "Make /f.", gold="touch /f"))
GO, TAKE, BACK, RUN, UNDO, STOP = (
    Choice(kind) for kind in ("accept", "take_over", "hand_back", "run", "undo", "stop")
)


def act(action: str) -> Choice:
    return Choice("act", action)


class ScriptedPlayer(Player):
    """Makes the given choices and records what it is shown."""

    def __init__(self, *choices: Choice) -> None:
        self.choices = list(choices)
        self.offered: list[tuple[str | None, Leader]] = []
        self.notes: list[str] = []
        self.seen: list[str] = []
        self.interrupts = 0

    def choose(
        self, episode: InteractiveEpisode, proposal: AgentOutput | None, leader: Leader
    ) -> Choice:
        self.offered.append((proposal.action if proposal else None, leader))
        return self.choices.pop(0)

    def observe(self, episode: InteractiveEpisode, feedback: Step) -> None:
        self.seen.append(feedback.observation)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def interrupted(self) -> None:
        self.interrupts += 1


class UnawareAgent(Agent):
    """Plays its actions from the first at each start, and records no intervention."""

    def __init__(self, *actions: str) -> None:
        self.actions = actions
        self.briefs: list[Brief] = []

    def start(self, brief: Brief) -> None:
        self.briefs.append(brief)
        self.left = list(self.actions)

    def act(self, feedback: Step | None) -> AgentOutput | None:
        return AgentOutput(self.left.pop(0)) if self.left else None


def fenced(*actions: str) -> list[str]:
    return [f"```bash\n{action}\n```" for action in actions]


def single_turn_talk(agent: Agent) -> list[tuple[str, str]]:
    return [(m["role"], m["content"]) for m in agent.messages]


def react(*actions: str, max_turns: int = 10) -> Agent:
    return open_agent("try-again", model=ScriptedModel(fenced(*actions)), max_turns=max_turns)


class FailingAgent(UnawareAgent):
    """Fails at its second action."""

    error: BaseException = ModelUnavailableError("the endpoint is down")

    def act(self, feedback: Step | None) -> AgentOutput | None:
        if len(self.left) < len(self.actions):
            self.left = []  # an incomplete turn, which has to be undone
            raise self.error
        return super().act(feedback)
