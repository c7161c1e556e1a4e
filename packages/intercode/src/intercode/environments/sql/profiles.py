"""The profile ``standard`` of SQL, and what its other profiles implement."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Protocol

from intercode.core.errors import GoldError
from intercode.core.types import ExecResult, Rows, State, Task
from intercode.datasets.payloads import SqlPayload
from intercode.environments.base.hashes import observation_hash
from intercode.environments.base.profiles import GOLD_SECONDS, Profile
from intercode.environments.sql.database_changes import (
    database_changes,
    has_changed_tables,
)
from intercode.environments.sql.engine import EngineSession
from intercode.environments.sql.further_columns import further_columns
from intercode.environments.sql.row_order import rank_rows
from intercode_sql.base import ERROR_PREFIX


class SqlWorkspace:
    """The session of an episode.

    ``open_pristine`` opens a session on the initial data. ``abort`` also ends those.
    """

    def __init__(self, session: EngineSession, open_pristine: Callable[[], EngineSession]) -> None:
        self.session, self._open_pristine = session, open_pristine
        self._pristine_sessions: list[EngineSession] = []
        self._aborted = False

    @property
    def cwd(self) -> str:
        return self.session.database

    def run(self, action: str, timeout: float) -> ExecResult:
        return self.session.run(action, timeout)

    def changed_paths(self) -> list[str]:
        return self.session.changes()

    def state_hash(self) -> str:
        return observation_hash(self.session.state_text())

    def open_pristine(self) -> EngineSession:
        """Open a session on the initial data. The caller closes it."""
        session = self._open_pristine()
        self._pristine_sessions.append(session)
        if self._aborted:
            session.abort()
        return session

    def abort(self) -> None:
        self._aborted = True
        for session in (self.session, *self._pristine_sessions):
            session.abort()

    def close(self) -> None:
        self.session.close()


class SqlEpisode(Protocol):
    """An episode, as a profile sees it."""

    @property
    def task(self) -> Task: ...
    @property
    def workspace(self) -> SqlWorkspace: ...


class SqlProfile(Profile):
    """A profile of SQL."""

    def require_gold(self, task: Task) -> None:
        if not task.golds:
            raise GoldError(f"{task.id} has no gold: nothing to score against")

    def open_session(self, connection: EngineSession, task: Task, state: None) -> EngineSession:  # noqa: ARG002
        return connection


class StandardSqlProfile(SqlProfile):
    """Each gold runs once per episode, on the initial data. A gold that fails is a fault of the
    dataset."""

    _golds: list[State] | None = None

    def agent_state(
        self,
        episode: SqlEpisode,
        last: ExecResult | None,
        answer: str | None,  # noqa: ARG002
    ) -> State:
        workspace = episode.workspace
        state = State(last.output, rows=last.rows) if last else State()
        if not has_changed_tables(workspace.session):
            return replace(state, changes=())
        with closing(workspace.open_pristine()) as pristine:
            return replace(state, changes=database_changes(workspace.session, pristine))

    def gold_states(self, episode: SqlEpisode) -> list[State]:
        task, workspace = episode.task, episode.workspace
        if self._golds is None:
            self._golds = []
            session = workspace.open_pristine()
            try:
                for gold in task.golds:
                    if self._golds and has_changed_tables(session):
                        session.close()
                        session = workspace.open_pristine()
                    self._golds.append(_gold_state(task, gold, session, workspace))
            except BaseException:
                self._golds = None
                raise
            finally:
                session.close()
        return self._golds

    def close(self) -> None:
        self._golds = None


def _run_gold(task: Task, gold: str, session: EngineSession) -> ExecResult:
    """Run a gold. Raises GoldError if it fails."""
    result = session.run(gold, GOLD_SECONDS)
    if not result.ok:
        why = result.output.removeprefix(ERROR_PREFIX)
        raise GoldError(f"the gold of {task.id} fails: {why}")
    return result


def _gold_state(task: Task, gold: str, session: EngineSession, workspace: SqlWorkspace) -> State:
    """Return the result of a gold with the order that it asks for, or what it changes. Raises
    GoldError if it fails."""
    result = _run_gold(task, gold, session)
    compare = SqlPayload.of(task).compare
    by_gold = compare != SqlPayload.RESULT and has_changed_tables(session)
    if compare == SqlPayload.DATABASE or by_gold:
        with closing(workspace.open_pristine()) as pristine:
            return State(result.output, changes=database_changes(session, pristine))

    def run(statement: str) -> Rows | None:
        return session.run(statement, GOLD_SECONDS).rows

    ranks = None if result.rows is None else rank_rows(gold, result.rows, run)
    more = compare == SqlPayload.FURTHER
    further = further_columns(gold, result.rows or (), run) if more else ()
    return State(result.output, rows=result.rows, ranks=ranks, further=further)
