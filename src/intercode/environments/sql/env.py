"""The SQL environment: answer a question about a database with SQL."""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

from intercode.core.errors import DataError, GoldError, UsageError
from intercode.core.types import DatabaseSpec, Dataset, ExecResult, State, Task
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.hashes import observation_hash
from intercode.environments.sql.profiles import OriginalSqlProfile, SqlProfile, StandardSqlProfile
from intercode.sql import EngineKind, SqlLimits, SqlSession, open_engine

_SANDBOX_SETTINGS = {"image": None, "sandbox": "auto", "network": "none", "deterministic": False}
"""Settings of sandboxes with the only value that SQL accepts: it runs on an engine without a
sandbox."""


def _database(task: Task) -> DatabaseSpec:
    if task.database is None:
        raise DataError(f"{task.id} names no database: its row needs one")
    return task.database


def _reject_sandbox_settings(settings: dict[str, Any]) -> None:
    for name, default in _SANDBOX_SETTINGS.items():
        if settings.get(name, default) != default:
            setting = f"{name}={settings[name]!r}"
            raise UsageError(f"SQL runs on an engine and in no sandbox: leave out {setting}")


class SqlEnv(InterCodeEnv):
    """Answer a question with SQL; the reward compares the rows of the last result with the gold's.

    An action is one statement. The observation is what the authors show of its result (see
    sql/base.py). ``engine``: ``embedded`` answers as MySQL does and needs no installation,
    ``mysql`` is a server (a private one, or the one at ``dsn``), ``sqlite`` is plain SQLite.
    ``limits`` bound what a statement may cost.

    No episode sees the statements of another. The gold runs on the initial data; in the
    ``original`` profile it runs on the agent's connection. The other settings are InterCodeEnv's;
    those of images, sandboxes and networks are refused.
    """

    name: ClassVar[str] = "sql"

    def __init__(
        self,
        dataset: str | Dataset = "starter",
        *,
        engine: EngineKind = "embedded",
        dsn: str | None = None,
        limits: SqlLimits | None = None,
        **settings: Any,
    ) -> None:
        _reject_sandbox_settings(settings)
        super().__init__(dataset, **settings)
        self._profile_impl: SqlProfile = (
            OriginalSqlProfile() if self.profile == "original" else StandardSqlProfile()
        )
        self._engine = open_engine(engine, dsn)
        self.limits = limits or SqlLimits()
        self._settings |= {"engine": engine, "dsn": dsn, "limits": limits}

    _session: SqlSession | None = None
    _gold_session: SqlSession | None = None
    _aborted = False

    def result_metadata(self) -> dict[str, Any]:
        engine = {
            "kind": self._engine.kind,
            "version": self._engine_version,
            **self._engine.metadata(),
        }
        return {
            **super().result_metadata(),
            "env_options": {"engine": engine["kind"]},
            "engine": engine,
            "tier": f"{engine['kind']}: {engine['version']}",
            "arch": platform.machine(),
        }

    @cached_property
    def _engine_version(self) -> str:
        return self._engine.version

    @property
    def working_directory(self) -> str:
        return self._session.database if self._session else ""

    def close(self) -> None:
        super().close()
        self._engine.close()

    def abort(self) -> None:
        self._aborted = True
        for session in (self._session, self._gold_session):
            if session is not None:
                session.abort()

    # ------------------------------------------------------------- the episode
    def _open_episode(self, task: Task) -> None:
        self._session = self._open_session(task)

    def _open_session(self, task: Task) -> SqlSession:
        return self._engine.open(_database(task), self.limits)

    def _open_gold_session(self, task: Task) -> SqlSession:
        self._gold_session = self._open_session(task)
        if self._aborted:
            self._gold_session.abort()
        return self._gold_session

    def _close_episode(self) -> None:
        self._profile_impl.close()
        session, self._session = self._session, None
        self._gold_session, self._aborted = None, False
        if session is not None:
            session.close()

    def _is_open(self) -> bool:
        return self._session is not None

    @property
    def _current_session(self) -> SqlSession:
        assert self._session is not None
        return self._session

    def _execute(self, action: str) -> ExecResult:
        return self._profile_impl.run(self._current_session, action, self.timeout)

    def _changes(self) -> list[str]:
        return self._current_session.changes()

    def _agent_state(self, last: ExecResult | None, answer: str | None) -> State:  # noqa: ARG002
        return self._profile_impl.agent_state(last, self.task)

    def _gold_states(self, task: Task) -> list[State]:
        if not task.golds:
            raise GoldError(f"{task.id} has no gold: nothing to score against")
        return self._profile_impl.gold_states(
            task, self._current_session, lambda: self._open_gold_session(task)
        )

    def _hash_info(self, observation: str) -> dict[str, Any]:
        if not self.hashes:
            return {}
        texts = {"observation": observation, "state": self._current_session.state_text()}
        return {"hashes": {name: observation_hash(text) for name, text in texts.items()}}

    # --------------------------------------------------------------- snapshots
    def _capture(self) -> tuple[Any, tuple[str, ...], Callable[[], None]]:
        snapshot = self._current_session.snapshot()
        return snapshot, snapshot.omitted_tables, snapshot.close

    def _restore_captured(self, captured: Any, consume: bool) -> None:
        self._session = captured.open_last() if consume else captured.open()
