"""One episode as a run plays it: retried when the box or the endpoint failed, then an error."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from intercode.agents.base import Agent
from intercode.envs.base import InterCodeEnv
from intercode.errors import (
    InfrastructureError,
    InterCodeError,
    ModelRefusedError,
    SandboxUnavailableError,
    UsageError,
)
from intercode.rollout import rollout
from intercode.runner.plan import Plan, with_facts
from intercode.types import Trajectory

BACKOFF = (0.5, 2.0)
"""Seconds to wait before each further attempt."""


class Player:
    """Plays one episode after another with an environment and an agent of its own.

    ``pause`` waits so many seconds and tells whether the run is over.
    """

    def __init__(self, plan: Plan, pause: Callable[[float], bool]) -> None:
        self.plan = plan
        self._pause = pause
        self._pair: tuple[InterCodeEnv, Agent] | None = None

    def play(self, index: int) -> Trajectory | None:
        """The episode of one task, or None when the run is over.

        A failure of the infrastructure (a box that was lost, say) is retried, which the facts tell
        as ``attempts``, and then recorded with ``end='error'``; any other at once. Raises what no
        other episode would escape: ModelRefusedError, SandboxUnavailableError, UsageError.
        """
        for attempt, wait in enumerate((*BACKOFF, None), 1):
            try:
                again = {"attempts": attempt} if attempt > 1 else {}
                return with_facts(self.plan, self._once(index), **again)
            except (ModelRefusedError, SandboxUnavailableError, UsageError):
                raise
            except (InfrastructureError, OSError) as e:
                self.close()
                if wait is None:
                    return self._failure(index, e, attempt)
                if self._pause(wait):
                    return None
            except Exception as e:  # a gold, an agent or a reward function with a fault
                self.close()
                return self._failure(index, e, 1)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def close(self) -> None:
        """Free the environment; the next episode makes a new one."""
        pair, self._pair = self._pair, None
        if pair is not None:
            with suppress(InterCodeError, OSError):  # it may be what failed
                pair[0].close()

    def _once(self, index: int) -> Trajectory:
        if self._pair is None:
            self._pair = self.plan.env(), self.plan.agent()
        env, agent = self._pair
        config = self.plan.config
        seed = None if config.seed is None else config.seed + index
        return rollout(agent, env, index, seed=seed, max_turns=config.max_turns)

    def _failure(self, index: int, error: Exception, attempts: int) -> Trajectory:
        task = self.plan.dataset.tasks[index]
        text = f"{type(error).__name__}: {error}"
        failed = Trajectory(
            task=task.id, index=index, query=task.query, steps=(), end="error", error=text,
            group=task.group, hardness=task.hardness,
        )  # fmt: skip
        return with_facts(self.plan, failed, attempts=attempts)
