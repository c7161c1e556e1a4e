"""Replay of recorded SQL episodes: scorers, logged forms, and what leaked from one to another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from intercode.core.types import Score, Step, Trajectory
from intercode.datasets.load_cache import load_cached
from intercode.environments.base.env import SUBMIT, InterCodeEnv
from intercode.environments.base.replay.comparison import StepComparison
from intercode.environments.base.replay.rules import ReplayRules
from intercode.environments.sql import recorded_results

MAX_LOGGED_ROWS = 25
"""Rows of a result that the authors' ReAct logs keep; 350 characters of an error."""
MAX_LOGGED_ERROR = 350

LEAKED_TABLES: Mapping[str, frozenset[str]] = {
    "concert_singer": frozenset({"singers"}),
    "poker_player": frozenset({"players", "poker_players"}),
    "singer": frozenset({"citizens"}),
}
"""By database: tables that no dump makes and the logs show. Models of other logs had created them
on the server that all runs shared."""

LEAKED_TABLE_CAUSE = "a table that another episode had left"
"""The cause of what depends on one of them."""

LENIENT_TASKS: Mapping[str, tuple[range, ...]] = {"react": (range(154, 199), range(302, 534))}
"""By agent: tasks played after `SET sql_mode = ''` (in 153 and 301) on the same connection,
up to the end of that run. There MySQL's rule for grouped queries did not hold."""
LENIENT_CAUSE = "a session setting that another episode had left"

_WITH_TAU = frozenset({"plan-solve"})
"""Agents whose logs the authors scored with τ. Those of ReAct were scored before the code had it,
those of Try Again with both, few steps with τ."""
_EXECUTE = re.compile(r"execute\[(.*)\]", re.DOTALL)
_CATALOGUE = re.compile(r"\bshow\b|information_schema", re.IGNORECASE)
_WORD = re.compile(r"\w+")


class SqlReplayRules(ReplayRules):
    """SQL: one of two scorers an episode, rows cut in some logs, tables that leaked."""

    reusable: ClassVar[bool] = True

    def dataset(self, name: str) -> str:
        """The authors' files are Spider's development set under two names."""
        return "spider" if re.search(r"spider", name) and not name.startswith("spider") else name

    def settings(self, trajectory: Trajectory) -> Mapping[str, Any]:  # noqa: ARG002
        """The score with τ also tells the one without, so that ``settled`` can choose."""
        return {"reward": "sql-original"}

    def executed_step(self, trajectory: Trajectory, step: Step) -> Step:
        """The authors' ReAct loop looked for ``execute[...]`` anywhere in what the model wrote; the
        reward of 0 of such a step was never scored."""
        if trajectory.run.get("agent") != "react":
            return step
        if wrapped := _EXECUTE.search(step.action):
            return replace(step, action=wrapped[1], reward=None)
        return step

    def play_and_score(self, env: InterCodeEnv, step: Step) -> tuple[str, Score | None]:
        """A statement, or the ``submit`` that tells the last observation once more."""
        if step.action.split(None, 1)[:1] == [SUBMIT]:
            observation = env.last_observation
        else:
            observation, *_ = env.step(step.action)
        return observation, None if step.reward is None else env.score()

    def logged_observation(self, trajectory: Trajectory, step: Step, observation: str) -> str:
        """ReAct's logs keep 25 rows, or 350 characters of an error; a person was shown the rows
        one after another without brackets or commas."""
        agent = trajectory.run.get("agent")
        if agent == "react" and len(observation) > len(step.observation):
            if recorded_results.is_error(observation):
                return observation[:MAX_LOGGED_ERROR]
            rows = recorded_results.parse_rows(observation)
            if rows is not None and len(rows) > MAX_LOGGED_ROWS:
                return f"[{', '.join(rows[:MAX_LOGGED_ROWS])}]"
        if agent == "human" and not recorded_results.is_error(observation):
            rows = recorded_results.parse_rows(observation)
            return observation if rows is None else "".join(rows)
        return observation

    def same(self, recorded: str, replayed: str) -> bool:
        return recorded_results.same_observation(recorded, replayed)

    def review_checks(
        self, trajectory: Trajectory, checks: list[StepComparison]
    ) -> list[StepComparison]:
        """Rewards of the scorer that explains more of the episode's, and of two that explain as
        many of the one that the log is known for; and which steps depend on what had leaked."""
        without = [_without_tau(check) for check in checks]
        a, b = (sum(c.same_reward for c in found) for found in (checks, without))
        known = trajectory.run.get("agent") not in _WITH_TAU
        chosen = without if b > a or (a == b and known) else checks
        out: list[StepComparison] = []
        for check in chosen:
            handed_in = check.action.split(None, 1)[:1] == [SUBMIT] and out
            why = out[-1].cause if handed_in else _leak_cause(trajectory, check)
            out.append(replace(check, stable=not why, cause=why))
        return out

    def cause(self, step: StepComparison) -> str:
        """The first reason that shows; see ``sql_texts.difference``."""
        return recorded_results.difference_cause(step.action, step.recorded, step.replayed)


def _without_tau(check: StepComparison) -> StepComparison:
    if check.replayed_reward is None:
        return check
    return replace(check, replayed_reward=check.parts.get("iou", check.replayed_reward))


def _leak_cause(trajectory: Trajectory, check: StepComparison) -> str:
    """What another episode had left that a step depends on; empty where it depends on nothing."""
    if _depends_on_leaked_table(trajectory, check):
        return LEAKED_TABLE_CAUSE
    here = (
        recorded_results.is_error(check.replayed)
        and recorded_results.error_kind(check.replayed) == "grouping"
    )
    tasks = LENIENT_TASKS.get(str(trajectory.run.get("agent")), ())
    if (
        here
        and not recorded_results.is_error(check.recorded)
        and any(trajectory.index in t for t in tasks)
    ):
        return LENIENT_CAUSE
    return ""


def _depends_on_leaked_table(trajectory: Trajectory, check: StepComparison) -> bool:
    """Whether a step could only come out as it did because of a table of another episode's."""
    names = LEAKED_TABLES.get(_database(trajectory), frozenset())
    if not names:
        return False
    text = check.recorded.lower()
    if _CATALOGUE.search(check.action) and any(f"'{name}'" in text for name in names):
        return True
    named = names & set(_WORD.findall(check.action.lower()))
    missing = (
        recorded_results.is_error(check.recorded)
        and recorded_results.error_kind(check.recorded) in _MISSING_TABLE_KINDS
    )
    return bool(named) and not missing


_MISSING_TABLE_KINDS = ("missing table", "syntax")


def _database(trajectory: Trajectory) -> str:
    task = load_cached("spider", "sql").tasks[trajectory.index]
    return "" if task.database is None else task.database.name
