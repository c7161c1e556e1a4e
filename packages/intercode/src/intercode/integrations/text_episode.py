"""An episode in which each action is a model's whole answer, and each observation a message.

The adapters of trainers that own the loop share it (SkyRL, ``examples/verifiers``).
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any

from intercode.agents.parsing import parse_answer, scoring_note
from intercode.agents.prompt import format_observation
from intercode.core.errors import UsageError
from intercode.core.observations import OBSERVATION_LIMIT
from intercode.environments.base.env import InterCodeEnv
from intercode.integrations.action_prefixes import SHARED, describe_prefix

MAX_TURNS = 10
"""The turns of an episode for which the adapter's user has set none."""
_NO_CODE = "No code was found in your answer. Write it in one fenced block."


@dataclass(frozen=True, slots=True)
class Reply:
    """What an answer led to: the next message, the reward, and Gymnasium's ``info``."""

    message: str
    reward: float
    info: dict[str, Any] = field(default_factory=dict)


class TextEpisode:
    """An episode of an environment. After its ``max_turns`` answers, the present state is scored.

    ``turns`` are the answers so far and the actions of the prefix. ``done``: the episode is over.
    ``score``: that of the last state that was scored.
    """

    def __init__(self, env: InterCodeEnv) -> None:
        self.env = env
        self.turns, self.done, self.score = 0, True, 0.0

    def begin(self, task: int | str, seed: int | None = None, prefix: object = None) -> list[str]:
        """Begin the episode of a task, after the actions of ``prefix``. Return the first messages:
        the query with its notes and what is judged, and what the prefix printed.

        Raises UsageError for a prefix that ends the episode.
        """
        played = SHARED.begin(self.env, task, seed, prefix)
        self.turns, self.done, self.score = len(played), False, 0.0
        brief = self.env.brief
        self._language = brief.description.language
        query = "\n".join(filter(None, (brief.query, brief.notes, scoring_note(brief))))
        return list(filter(None, (query, describe_prefix(played, OBSERVATION_LIMIT))))

    def answer(self, text: str) -> Reply:
        """Run the code of an answer. An answer without code is a turn, too.

        Raises UsageError if the episode is over or the answer is no text, and InfrastructureError
        if the sandbox failed, which ends the episode.
        """
        self._require_running()
        if not isinstance(text, str):
            raise UsageError(f"an answer is a str, not {type(text).__name__}")
        self.turns, self.done = self.turns + 1, True  # in case of an error
        code = parse_answer(text, self._language).code
        if code is None:
            reply, ended, scored = Reply(_NO_CODE, 0.0, {"valid": False}), False, None
        else:
            result = self.env.execute(code)
            message, _ = format_observation(result, OBSERVATION_LIMIT)
            reply = Reply(message, result.paid, result.info)
            ended, scored = result.done, result.score
        limit = self.env.max_turns
        self.done = ended or (limit is not None and self.turns >= limit)
        reward = reply.reward
        if self.done and scored is None:  # at the turn limit
            scored = self.env.score()
            if self.env.settings.reward_mode == "final":  # the other modes have paid it
                reward = scored.value
        if scored is None:
            return reply
        self.score = scored.value
        return Reply(reply.message, reward, reply.info | {"score": self.score})

    def fork(self, n: int) -> list[TextEpisode]:
        """Return ``n`` independent episodes that go on from the present state. The caller closes
        their environments.

        Raises UsageError if the episode is over or ``n`` is less than 1.
        """
        self._require_running()
        forks = []
        for env in self.env.fork(n):
            fork = copy(self)
            fork.env = env
            forks.append(fork)
        return forks

    def _require_running(self) -> None:
        if self.done:
            raise UsageError("the episode is over: begin another one")
