"""The environment of one session, as tools: reset, step, score, snapshot, restore."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from intercode.agents.parsing import full_query
from intercode.core.errors import EnvironmentStateError, UsageError
from intercode.core.types import Step, to_jsonable
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.snapshots.snapshot import EnvironmentSnapshot

MAX_SNAPSHOTS = 16
"""Snapshots of an episode that a session may keep."""


@dataclass(frozen=True, slots=True)
class EnvironmentToolResult:
    """The result of a tool: what a model should read, and the same for programs."""

    text: str
    values: dict[str, Any]


class EnvironmentSession:
    """An environment, made at the first ``reset``, that plays one episode at a time.

    ``score_requests``: asking for the score does not end the episode, and its snapshots remain
    until the next one. Use it in one thread at a time. Its methods raise the errors of
    environments.
    """

    def __init__(self, make: Callable[[], InterCodeEnv], score_requests: bool = False) -> None:
        self._make, self._score_requests = make, score_requests
        self._env: InterCodeEnv | None = None
        self._is_live = False
        self._snapshots: dict[str, EnvironmentSnapshot] = {}
        self._snapshots_taken = 0

    def reset(
        self, task: int | str | None = None, seed: int | None = None
    ) -> EnvironmentToolResult:
        """Begin an episode, of a random task if none is given. Refused arguments leave the running
        episode as it is."""
        if self._env is None:
            self._env = self._make()
        previous = self._env.episode if self._is_live else None
        try:
            query, _ = self._env.reset(seed=seed, options={"task": task})
        except BaseException:
            if previous is not None and previous.is_closed:
                self._end()
            raise
        self._drop_snapshots()
        self._is_live = True
        brief = self._env.brief
        info = {
            "environment": brief.environment,
            "max_turns": brief.max_turns,
            "notes": brief.notes,
            "expects_answer": brief.expects_answer,
            "only_changes": brief.only_changes,
        }
        return EnvironmentToolResult(full_query(brief), {"observation": query, "info": info})

    def step(self, action: str) -> EnvironmentToolResult:
        """Run an action of the running episode."""
        env = self._running_env()
        self._is_live = False  # unless it goes on: a failure of the machine ends it
        result = env.execute(action)
        if result.done:
            self._end()
        self._is_live = not result.done
        info = {name: value for name, value in result.info.items() if name != "task"}
        values = {
            "observation": result.observation,
            "reward": result.reward,
            "terminated": result.terminated,
            "truncated": result.truncated,
            "info": to_jsonable(info),
        }
        return EnvironmentToolResult(_step_text(result), values)

    def score(self) -> EnvironmentToolResult:
        """Return the score of the present state. Ends the episode without ``score_requests``."""
        if self._env is None:
            raise EnvironmentStateError("there is nothing to score yet: reset begins an episode")
        score = self._env.score()
        if not self._score_requests:
            self._end()
        info = {"score": score.value, "parts": dict(score.parts)}
        values = {
            "observation": "",
            "reward": 0.0,
            "terminated": not self._is_live,
            "truncated": False,
            "info": info,
        }
        end = "" if self._is_live else ", and the episode has ended"
        return EnvironmentToolResult(f"The score is {score.value:g}{end}.", values)

    def snapshot(self) -> EnvironmentToolResult:
        """Save the state of the running episode."""
        env = self._running_env()
        if len(self._snapshots) >= MAX_SNAPSHOTS:
            raise UsageError(f"an episode has at most {MAX_SNAPSHOTS} snapshots")
        saved = env.snapshot()
        self._snapshots_taken += 1
        name = f"snapshot-{self._snapshots_taken}"
        self._snapshots[name] = saved
        left_out = f" It does not hold: {', '.join(saved.omitted)}." if saved.omitted else ""
        values = {"snapshot": name, "omitted": list(saved.omitted)}
        return EnvironmentToolResult(f"Saved as {name}.{left_out}", values)

    def restore(self, snapshot: str) -> EnvironmentToolResult:
        """Continue from a saved state."""
        if self._env is None or snapshot not in self._snapshots:
            known = ", ".join(self._snapshots) or "none"
            raise UsageError(
                f"there is no snapshot {snapshot!r:.80}, only: {known}. Snapshots end with their "
                "episode"
            )
        self._is_live = False
        self._env.restore(self._snapshots[snapshot])
        self._is_live = True
        return EnvironmentToolResult(
            f"The episode continues from {snapshot}.", {"snapshot": snapshot}
        )

    def abort(self) -> None:
        """Interrupt the call that another thread makes."""
        if (env := self._env) is not None:
            env.abort()

    def close(self) -> None:
        """End the episode and close the environment. May be called again."""
        self._end()
        self._drop_snapshots()
        env, self._env = self._env, None
        if env is not None:
            env.close()

    def _running_env(self) -> InterCodeEnv:
        if self._env is None or not self._is_live:
            raise EnvironmentStateError("no episode is running: reset begins one")
        return self._env

    def _end(self) -> None:
        """End the episode, and without ``score_requests`` its snapshots."""
        self._is_live = False
        if not self._score_requests:
            self._drop_snapshots()

    def _drop_snapshots(self) -> None:
        for snapshot in self._snapshots.values():
            snapshot.close()
        self._snapshots.clear()


def _step_text(result: Step) -> str:
    """Return what a model reads of a step."""
    notes = []
    if result.timed_out:
        notes.append("[The action was stopped at its time limit.]")
    if result.truncated:
        notes.append("[That was the last turn.]")
    if result.done:
        notes.append(f"[The episode has ended with the reward {result.paid:g}.]")
    elif result.score is not None:
        notes.append(f"[The reward of this turn is {result.paid:g}.]")
    text = result.observation.rstrip("\n")
    return "\n".join([*([text] if text else []), *notes]) or "(no output)"
