"""An episode that is played by hand: recorded turn by turn, and turns can be taken back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

from intercode.core.errors import EnvironmentStateError
from intercode.core.types import (
    ActionError,
    AgentOutput,
    EndReason,
    Score,
    Step,
    Trajectory,
    Usage,
    to_jsonable,
)
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.snapshots.snapshot import EnvironmentSnapshot
from intercode.evaluation.rollout import (
    make_trajectory,
    score_final_state,
    take_turn,
)

UNDO_LEVELS = 20
"""How many turns can be taken back by default."""


class Interrupted(Exception):  # noqa: N818
    """Ctrl-C stopped an action, and its turn was taken back."""


class InteractiveEpisode:
    """The running episode of an environment. Close it to free its snapshots.

    ``steps`` are its turns so far. ``undone`` describes the turns that were taken back, which are
    no longer part of it. ``score_requests`` counts how often its score was requested.
    ``agent_usage`` is what the agent has used in all, also for proposals that never ran. Before
    each of the last ``undo_levels`` turns a snapshot is kept. Every action runs in the context that
    ``interruptible`` returns.
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
        """The score that was requested last, with the number of turns before it."""
        self._latest: Score | None = None
        # the snapshot before each turn, or why there is none
        self._snapshots: dict[int, EnvironmentSnapshot | str] = {}
        self._started = time.monotonic()

    def take_turn(self, output: AgentOutput, scored: bool = False) -> tuple[Step, EndReason | None]:
        """Take one turn, as ``rollout.take_turn`` does.

        Raises Interrupted if Ctrl-C stopped the action and the turn was taken back, and
        KeyboardInterrupt if it could not be taken back.
        """
        number = len(self.steps)
        self._snapshot_before(number)
        try:
            with self._interruptible():
                step, end = take_turn(self.env, output, scored)
        except KeyboardInterrupt as e:
            snapshot = self._snapshots.pop(number)
            if isinstance(snapshot, str):
                raise
            self._restore(snapshot)
            raise Interrupted from e
        self.steps.append(step.as_recorded())
        self._latest = step.action_score
        return step, end

    def undo(self) -> tuple[Step, tuple[str, ...]]:
        """Take the last turn back.

        Returns its step and the processes that could not be restored. Raises EnvironmentStateError
        with the reason if the turn cannot be taken back.
        """
        number = len(self.steps) - 1
        if number < 0:
            raise EnvironmentStateError("nothing to take back")
        snapshot = self._snapshots.get(
            number, f"only the last {self.undo_levels} turns can be taken back"
        )
        if isinstance(snapshot, str):
            raise EnvironmentStateError(snapshot)
        del self._snapshots[number]
        self._restore(snapshot)
        step = self.steps.pop()
        note = {"turn": number + 1, "actor": step.actor, "action": step.action}
        self.undone.append(note)
        self.last_score = self._latest = None
        return step, snapshot.omitted

    def score(self) -> Score:
        """Return the score of the current state, and count the request."""
        score = self.env.score()
        self.score_requests += 1
        self.last_score = len(self.steps), score
        return score

    def repeat(self, unfinished: Trajectory) -> int | None:
        """Take the turns of an unfinished episode again and adopt its notes.

        Returns the number, from 1, of the first turn whose observation differs, or None.
        """
        differs = None
        self.undone = list(unfinished.run.get("undone", ()))
        self.score_requests = unfinished.run.get("scores_seen", 0)
        spent = unfinished.run.get("spent")
        self.agent_usage = unfinished.usage if spent is None else Usage(**spent)
        for number, step in enumerate(unfinished.steps, 1):
            repeated, _ = self.take_turn(step.agent_output(), step.score is not None)
            if differs is None and repeated.observation != step.observation:
                differs = number
        return differs

    def finish(self, end: EndReason) -> Trajectory:
        """Score the final state and return the record of the episode.

        Its ``run`` holds, if they are not empty: ``undone``, ``scores_seen`` (the score
        requests), and ``spent`` (the agent's usage, if it differs from that of the steps).
        """
        steps, score = self.steps, self._latest
        if score is None:
            steps = list(self.steps)
            score = score_final_state(self.env, steps)
        return self._record(steps, end, score.action_error)

    def draft(self) -> Trajectory:
        """Return the record so far, which ``repeat`` resumes."""
        return self._record(self.steps, "unknown")

    def _record(
        self, steps: Sequence[Step], end: EndReason, failure: ActionError | None = None
    ) -> Trajectory:
        notes: dict[str, Any] = {"undone": self.undone, "scores_seen": self.score_requests}
        seconds = time.monotonic() - self._started
        record = make_trajectory(self.env, steps, end, seconds, failure)
        if self.agent_usage != record.usage:
            notes["spent"] = to_jsonable(self.agent_usage)
        notes = {name: value for name, value in notes.items() if value}
        return record.replace(run={**record.run, **notes})

    def close(self) -> None:
        """Free the snapshots."""
        for snapshot in self._snapshots.values():
            if isinstance(snapshot, EnvironmentSnapshot):
                snapshot.close()
        self._snapshots.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _snapshot_before(self, number: int) -> None:
        """Take a snapshot before a turn, and free the oldest one."""
        if not self.undo_levels:
            self._snapshots[number] = "no turn can be taken back"
            return
        try:
            self._snapshots[number] = self.env.snapshot()
        except EnvironmentStateError as e:
            self._snapshots[number] = str(e)
        oldest = self._snapshots.pop(number - self.undo_levels, None)
        if isinstance(oldest, EnvironmentSnapshot):
            oldest.close()

    def _restore(self, snapshot: EnvironmentSnapshot) -> None:
        with snapshot:
            self.env.restore(snapshot, consume=True)
