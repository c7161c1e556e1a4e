"""Replay of the authors' SQL logs: their scorers, their logged forms, and state that leaked from
one episode to another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from intercode.core.types import SUBMIT, Score, Step, Trajectory
from intercode.datasets.load_cache import load_cached
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.replay.comparison import StepComparison
from intercode.environments.sql import recorded_results
from intercode.environments.sql.replay_rules import SqlReplayRules
from intercode.paper.replay.rules import AuthorsRules

MAX_LOGGED_ROWS = 25
"""Rows of a result that the authors' ReAct logs hold."""
MAX_LOGGED_ERROR = 350
"""Characters of an error that the authors' ReAct logs hold."""

LEAKED_TABLES: Mapping[str, frozenset[str]] = {
    "concert_singer": frozenset({"singers"}),
    "poker_player": frozenset({"players", "poker_players"}),
    "singer": frozenset({"citizens"}),
}
"""By database: tables that no dump creates but the logs show. Models of other logs created them
on the server that all runs shared."""

LEAKED_TABLE_CAUSE = "a table that another episode had left"
"""The cause of a difference that depends on one of these tables."""

LENIENT_TASKS: Mapping[str, tuple[range, ...]] = {"react": (range(154, 199), range(302, 534))}
"""By agent: tasks played after `SET sql_mode = ''` (in 153 and 301) on the same connection, up
to the end of that run. There MySQL's rule for grouped queries did not apply."""
LENIENT_CAUSE = "a session setting that another episode had left"

_WITH_TAU = frozenset({"plan-solve"})
"""Agents whose logs the authors scored with τ. The ReAct logs were scored before the code had
it. The Try Again logs were scored with both versions, few steps with τ."""
_EXECUTE = re.compile(r"execute\[(.*)\]", re.DOTALL)
_CATALOGUE = re.compile(r"\bshow\b|information_schema", re.IGNORECASE)
_WORD = re.compile(r"\w+")


class AuthorsSqlRules(AuthorsRules, SqlReplayRules):
    """Replay rules for SQL: one of two scorers per episode, truncated rows in some logs, leaked
    tables."""

    def dataset(self, name: str) -> str:
        """Return our name; the authors have two names for Spider's development set."""
        return "spider" if re.search(r"spider", name) and not name.startswith("spider") else name

    def settings(self, trajectory: Trajectory) -> Mapping[str, Any]:  # noqa: ARG002
        """Return the reward with τ, which contains the other one; ``review_checks`` chooses."""
        return {"reward": "sql-original"}

    def executed_step(self, trajectory: Trajectory, step: Step) -> Step:
        """Return a step with its code alone. The authors' ReAct loop searched the model's whole
        text for ``execute[...]``, and never computed the reward of 0 in the log of such a step."""
        if trajectory.run.get("agent") != "react":
            return step
        if wrapped := _EXECUTE.search(step.action):
            return replace(step, action=wrapped[1], score=None)
        return step

    def play_and_score(self, env: InterCodeEnv, step: Step) -> tuple[str, Score | None]:
        """Execute a statement, or repeat the last observation for ``submit``."""
        if step.action.split(None, 1)[:1] == [SUBMIT]:
            observation = env.episode.last_observation
        else:
            observation = env.execute(step.action).observation
        return observation, None if step.score is None else env.score()

    def logged_observation(self, trajectory: Trajectory, step: Step, observation: str) -> str:
        """Return an observation in the log's form. ReAct's logs hold 25 rows, or 350 characters
        of an error. Humans saw the rows without brackets and commas."""
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
        """Choose the scorer that explains more of the episode's rewards, and mark the steps that
        depend on leaked state. If both explain as many, the scorer known for the log is used."""
        without = [_without_tau(check) for check in checks]
        a, b = (sum(c.same_reward for c in found) for found in (checks, without))
        scored_without_tau = trajectory.run.get("agent") not in _WITH_TAU
        chosen = without if b > a or (a == b and scored_without_tau) else checks
        out: list[StepComparison] = []
        for check in chosen:
            is_submission = check.action.split(None, 1)[:1] == [SUBMIT] and out
            why = out[-1].cause if is_submission else _leak_cause(trajectory, check)
            out.append(replace(check, stable=not why, cause=why))
        return out


def _without_tau(check: StepComparison) -> StepComparison:
    if check.replayed_reward is None:
        return check
    return replace(check, replayed_reward=check.parts.get("iou", check.replayed_reward))


def _leak_cause(trajectory: Trajectory, check: StepComparison) -> str:
    """Return the leaked state that a step depends on, or an empty text."""
    if _depends_on_leaked_table(trajectory, check):
        return LEAKED_TABLE_CAUSE
    is_grouping_error = (
        recorded_results.is_error(check.replayed)
        and recorded_results.error_kind(check.replayed) == "grouping"
    )
    tasks = LENIENT_TASKS.get(str(trajectory.run.get("agent")), ())
    if (
        is_grouping_error
        and not recorded_results.is_error(check.recorded)
        and any(trajectory.index in t for t in tasks)
    ):
        return LENIENT_CAUSE
    return ""


def _depends_on_leaked_table(trajectory: Trajectory, check: StepComparison) -> bool:
    """Return whether a step's result is possible only with a table of another episode."""
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
