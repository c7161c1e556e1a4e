"""An episode that is played by hand: recorded turn by turn, with a way back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

from intercode.core.errors import EnvironmentStateError
from intercode.core.types import AgentOutput, EndReason, Score, Step, Trajectory, Usage, to_jsonable
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.snapshots.snapshot import Snapshot
from intercode.evaluation.rollout import (
    AGENT_OUTPUT_FIELDS,
    make_trajectory,
    score_final_state,
    take_turn,
)

UNDO_LEVELS = 20
"""Turns that can be taken back."""


class Interrupted(Exception):  # noqa: N818
    """Ctrl-C stopped an action; its turn was taken back."""


class InteractiveEpisode:
    """The running episode of an environment.

    ``steps`` are its turns so far and ``undone`` notes on those that were taken back, which are no
    part of it. ``looks`` counts how often its score was asked for; ``spent`` is what an agent has
    spent in all, also on what never ran. ``levels``: so many turns can be taken back; a snapshot is
    kept before each. ``stoppable``: a context in which every action runs. Close it.
    """

    def __init__(
        self,
        env: InterCodeEnv,
        undo_levels: int = UNDO_LEVELS,
        interruptible: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.env, self.undo_levels, self._interruptible = env, undo_levels, interruptible
        self.steps: list[Step] = []
        self.undone: list[dict[str, Any]] = []
        self.score_requests, self.agent_usage = 0, Usage()
        self.last_score: tuple[int, Score] | None = None
        """The score that was asked for last, with the number of turns before it."""
        self._latest: Score | None = None
        self._snapshots: dict[int, Snapshot | str] = {}
        self._started = time.monotonic()

    def take_turn(self, move: AgentOutput, scored: bool = False) -> tuple[Step, Score | None, bool]:
        """One turn, as ``rollout.take``. Raises Interrupted where Ctrl-C stopped the action and
        the turn could be taken back; KeyboardInterrupt where it could not."""
        number = len(self.steps)
        self._snapshot_before(number)
        try:
            with self._interruptible():
                step, score, done = take_turn(self.env, move, scored)
        except KeyboardInterrupt as e:
            kept = self._snapshots.pop(number)
            if isinstance(kept, str):
                raise
            self._restore(kept)
            raise Interrupted from e
        self.steps.append(step)
        self._latest = score
        return step, score, done

    def undo(self) -> tuple[Step, tuple[str, ...]]:
        """Take the last turn back: its step, and what the state of before lacks (processes).

        Raises EnvironmentStateError where that cannot be, with the reason.
        """
        number = len(self.steps) - 1
        if number < 0:
            raise EnvironmentStateError("nothing to take back")
        kept = self._snapshots.get(
            number, f"only the last {self.undo_levels} turns can be taken back"
        )
        if isinstance(kept, str):
            raise EnvironmentStateError(kept)
        del self._snapshots[number]
        self._restore(kept)
        step = self.steps.pop()
        note = {"turn": number + 1, "actor": step.actor, "action": step.action}
        self.undone.append(note)
        self.last_score = self._latest = None
        return step, kept.omitted_processes

    def score(self) -> Score:
        """What handing in would earn now. That it was asked for is noted."""
        score = self.env.score()
        self.score_requests += 1
        self.last_score = len(self.steps), score
        return score

    def repeat(self, before: Trajectory) -> int | None:
        """Take the turns of an episode that was left once more, and its notes over. The number,
        from 1, of the first turn whose observation is another; None where all are the same."""
        differs = None
        self.undone = list(before.run.get("undone", ()))
        self.score_requests = before.run.get("scores_seen", 0)
        spent = before.run.get("spent")
        self.agent_usage = before.usage if spent is None else Usage(**spent)
        for number, step in enumerate(before.steps, 1):
            said: dict[str, Any] = {name: getattr(step, name) for name in AGENT_OUTPUT_FIELDS}
            move = AgentOutput(
                step.action if step.executed else None, reply=step.observation, **said
            )
            came, _, _ = self.take_turn(move, step.reward is not None)
            if differs is None and came.observation != step.observation:
                differs = number
        return differs

    def finish(self, end: EndReason) -> Trajectory:
        """The record of the episode, its final state scored. ``run`` holds notes where there are
        any: ``undone``, ``looks`` as ``scores_seen``, and ``spent`` where the steps do not tell
        it."""
        steps = self.steps if self._latest else score_final_state(self.env, list(self.steps))
        return self._record(steps, end)

    def draft(self) -> Trajectory:
        """The record so far, which ``again`` goes on with."""
        return self._record(self.steps, "unknown")

    def _record(self, steps: Sequence[Step], end: EndReason) -> Trajectory:
        notes: dict[str, Any] = {"undone": self.undone, "scores_seen": self.score_requests}
        made = make_trajectory(self.env, steps, end, time.monotonic() - self._started)
        if self.agent_usage != made.usage:
            notes["spent"] = to_jsonable(self.agent_usage)
        return made.replace(run={name: value for name, value in notes.items() if value})

    def close(self) -> None:
        """Free the snapshots."""
        for kept in self._snapshots.values():
            if isinstance(kept, Snapshot):
                kept.close()
        self._snapshots.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _snapshot_before(self, number: int) -> None:
        """Keep this moment, before the turn of that number."""
        if not self.undo_levels:
            self._snapshots[number] = "no turn can be taken back"
            return
        try:
            self._snapshots[number] = self.env.snapshot()
        except EnvironmentStateError as e:
            self._snapshots[number] = str(e)
        old = self._snapshots.pop(number - self.undo_levels, None)
        if isinstance(old, Snapshot):
            old.close()

    def _restore(self, kept: Snapshot) -> None:
        with kept:
            self.env.restore(kept, consume=True)
