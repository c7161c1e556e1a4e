"""An episode that is played by hand: recorded turn by turn, with a way back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

from intercode.core.errors import EnvironmentStateError
from intercode.core.types import EndReason, Move, Score, Step, Trajectory, Usage, plain
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.snapshots.snapshot import Snapshot
from intercode.evaluation.rollout import SAID, recorded, score_last, take

LEVELS = 20
"""Turns that can be taken back."""


class Interrupted(Exception):  # noqa: N818
    """Ctrl-C stopped an action; its turn was taken back."""


class Sitting:
    """The running episode of an environment.

    ``steps`` are its turns so far and ``undone`` notes on those that were taken back, which are no
    part of it. ``looks`` counts how often its score was asked for; ``spent`` is what an agent has
    spent in all, also on what never ran. ``levels``: so many turns can be taken back; a snapshot is
    kept before each. ``stoppable``: a context in which every action runs. Close it.
    """

    def __init__(
        self,
        env: InterCodeEnv,
        levels: int = LEVELS,
        stoppable: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.env, self.levels, self._stoppable = env, levels, stoppable
        self.steps: list[Step] = []
        self.undone: list[dict[str, Any]] = []
        self.looks, self.spent = 0, Usage()
        self.scored: tuple[int, Score] | None = None
        """The score that was asked for last, with the number of turns before it."""
        self._latest: Score | None = None
        self._kept: dict[int, Snapshot | str] = {}
        self._started = time.monotonic()

    def take(self, move: Move, scored: bool = False) -> tuple[Step, Score | None, bool]:
        """One turn, as ``rollout.take``. Raises Interrupted where Ctrl-C stopped the action and
        the turn could be taken back; KeyboardInterrupt where it could not."""
        number = len(self.steps)
        self._keep(number)
        try:
            with self._stoppable():
                step, score, done = take(self.env, move, scored)
        except KeyboardInterrupt as e:
            kept = self._kept.pop(number)
            if isinstance(kept, str):
                raise
            self._go_back(kept)
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
        kept = self._kept.get(number, f"only the last {self.levels} turns can be taken back")
        if isinstance(kept, str):
            raise EnvironmentStateError(kept)
        del self._kept[number]
        self._go_back(kept)
        step = self.steps.pop()
        note = {"turn": number + 1, "actor": step.actor, "action": step.action}
        self.undone.append(note)
        self.scored = self._latest = None
        return step, kept.left_behind

    def score(self) -> Score:
        """What handing in would earn now. That it was asked for is noted."""
        score = self.env.score()
        self.looks += 1
        self.scored = len(self.steps), score
        return score

    def again(self, before: Trajectory) -> int | None:
        """Take the turns of an episode that was left once more, and its notes over. The number,
        from 1, of the first turn whose observation is another; None where all are the same."""
        differs = None
        self.undone = list(before.run.get("undone", ()))
        self.looks = before.run.get("scores_seen", 0)
        spent = before.run.get("spent")
        self.spent = before.usage if spent is None else Usage(**spent)
        for number, step in enumerate(before.steps, 1):
            said: dict[str, Any] = {name: getattr(step, name) for name in SAID}
            move = Move(step.action if step.executed else None, reply=step.observation, **said)
            came, _, _ = self.take(move, step.reward is not None)
            if differs is None and came.observation != step.observation:
                differs = number
        return differs

    def finish(self, end: EndReason) -> Trajectory:
        """The record of the episode, its final state scored. ``run`` holds notes where there are
        any: ``undone``, ``looks`` as ``scores_seen``, and ``spent`` where the steps do not tell
        it."""
        steps = self.steps if self._latest else score_last(self.env, list(self.steps))
        return self._recorded(steps, end)

    def draft(self) -> Trajectory:
        """The record so far, which ``again`` goes on with."""
        return self._recorded(self.steps, "unknown")

    def _recorded(self, steps: Sequence[Step], end: EndReason) -> Trajectory:
        notes: dict[str, Any] = {"undone": self.undone, "scores_seen": self.looks}
        made = recorded(self.env, steps, end, time.monotonic() - self._started)
        if self.spent != made.usage:
            notes["spent"] = plain(self.spent)
        return made.replace(run={name: value for name, value in notes.items() if value})

    def close(self) -> None:
        """Free the snapshots."""
        for kept in self._kept.values():
            if isinstance(kept, Snapshot):
                kept.close()
        self._kept.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _keep(self, number: int) -> None:
        """Keep this moment, before the turn of that number."""
        if not self.levels:
            self._kept[number] = "no turn can be taken back"
            return
        try:
            self._kept[number] = self.env.snapshot()
        except EnvironmentStateError as e:
            self._kept[number] = str(e)
        old = self._kept.pop(number - self.levels, None)
        if isinstance(old, Snapshot):
            old.close()

    def _go_back(self, kept: Snapshot) -> None:
        with kept:
            self.env.restore(kept, last=True)
