"""Agents without a model: gold solutions, recorded actions, no action, and a human at a prompt."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from intercode.agents.base import Agent
from intercode.core.errors import GoldError, UsageError
from intercode.core.types import SUBMIT, AgentOutput, Brief, Step

NO_CODE = "No code was recorded for this turn."


class GoldAgent(Agent):
    """Plays the gold solution of each task.

    These are the actions of ``golds[task id]`` in order. Then it submits; where an answer counts,
    it submits the last action's output.
    """

    stops_itself = True

    def __init__(self, *, golds: Mapping[str, Sequence[str]]) -> None:
        self.golds = golds
        self._remaining: list[str] = []
        self._expects_answer = False

    def start(self, brief: Brief) -> None:
        """Begin an episode. Raises GoldError for a task without a gold."""
        actions = self.golds.get(brief.task)
        if not actions:
            raise GoldError(f"the task {brief.task!r} has no gold to play")
        self._remaining, self._expects_answer = [*actions, SUBMIT], brief.expects_answer

    def act(self, feedback: Step | None) -> AgentOutput | None:
        """Return the next action of the gold; None after it has submitted."""
        if not self._remaining:
            return None
        action = self._remaining.pop(0)
        if self._expects_answer and feedback is not None and not self._remaining:
            action = f"{action} {feedback.observation.strip()}"
        return AgentOutput(action)


class NoopAgent(Agent):
    """Submits without any other action. A task that rewards this agent tests nothing."""

    stops_itself = True

    def act(self, feedback: Step | None) -> AgentOutput | None:
        """Return ``submit``, then None."""
        return AgentOutput(SUBMIT) if feedback is None else None


class Restart:
    """Stands among recorded actions where the task was begun again."""


class ReplayAgent(Agent):
    """Plays recorded actions.

    These are ``actions[task id]`` in order; then it stops. An action of None is a turn without
    code; a ``Restart`` begins the task again.

    With ``wants_score`` False no turn is scored and the episode does not end at reward 1: for logs
    of strategies that continue there or submit by themselves.
    """

    stops_itself = True

    def __init__(
        self, *, actions: Mapping[str, Sequence[str | Restart | None]], wants_score: bool = True
    ) -> None:
        self.actions = actions
        self.wants_score = wants_score
        self._remaining: list[str | Restart | None] = []

    def metadata(self) -> dict[str, Any]:
        return {"max_restarts": None}  # as many as the record has

    def start(self, brief: Brief) -> None:
        """Begin an episode. Raises UsageError for a task that was not recorded."""
        if brief.task not in self.actions:
            raise UsageError(
                f"no actions are recorded for the task {brief.task!r}; "
                f"the record holds {len(self.actions)} other tasks"
            )
        self._remaining = list(self.actions[brief.task])
        self.max_restarts = sum(isinstance(action, Restart) for action in self._remaining)

    def restart(self, feedback: Step) -> bool:  # noqa: ARG002
        """Return whether the task was begun again here."""
        return bool(self._remaining) and isinstance(self._remaining.pop(0), Restart)

    def act(self, feedback: Step | None) -> AgentOutput | None:  # noqa: ARG002
        """Return the next recorded action, or None after the last before a restart or the end."""
        if not self._remaining or isinstance(self._remaining[0], Restart):
            return None
        action = self._remaining.pop(0)
        assert not isinstance(action, Restart)
        return AgentOutput(action, reply=NO_CODE if action is None else "")


class HumanAgent(Agent):
    """Reads each action from a human.

    It reads them line by line, for ``rollout``. ``read`` returns a line for a prompt and ``show``
    prints; the defaults work in a terminal and in a notebook. An empty line is read again; the end
    of the input ends the episode. ``intercode play`` is the comfortable alternative.
    """

    stops_itself = True
    can_resume = False

    def __init__(
        self, *, read: Callable[[str], str] | None = None, show: Callable[[str], None] | None = None
    ) -> None:
        self._uses_terminal = read is None
        self._read, self._show = read or input, show or print

    def start(self, brief: Brief) -> None:
        """Show the task. Raises UsageError if several episodes would read from one terminal."""
        if self._uses_terminal and threading.current_thread() is not threading.main_thread():
            raise UsageError("a human can only play one episode at a time: use `intercode play`")
        self._show("\n".join(filter(None, [f"[{brief.task}] {brief.query}", brief.notes])))

    def act(self, feedback: Step | None) -> AgentOutput | None:
        """Show the observation and read the next action; None at the end of the input."""
        if feedback is not None:
            stopped = "\n(stopped at the time limit)" if feedback.timed_out else ""
            self._show(feedback.observation.removesuffix("\n") + stopped)
        try:
            while not (line := self._read("action> ")).strip():
                continue
        except EOFError:
            return None
        return AgentOutput(line, actor="human")
