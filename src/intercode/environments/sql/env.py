"""SQL: answer a question with a database's own language."""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

from intercode.core.errors import DataError, GoldError, UsageError
from intercode.core.types import DatabaseSpec, Dataset, ExecResult, State, Task
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.hashes import of_observation
from intercode.environments.sql.profiles import Original, SqlProfile, Standard
from intercode.sql import EngineKind, SqlLimits, SqlSession, open_engine

_WITHOUT = {"image": None, "sandbox": "auto", "network": "none", "deterministic": False}
"""Settings of where code runs: SQL runs on an engine, in no box."""


def _database(task: Task) -> DatabaseSpec:
    if task.database is None:
        raise DataError(f"{task.id} names no database: nothing to ask")
    return task.database


def _refuse_boxes(settings: dict[str, Any]) -> None:
    for name, only in _WITHOUT.items():
        if settings.get(name, only) != only:
            given = f"{name}={settings[name]!r}"
            raise UsageError(f"SQL runs on an engine and in no sandbox: leave out {given}")


class SqlEnv(InterCodeEnv):
    """Answer a question with SQL; the reward compares the rows of the last result with the gold's.

    An action is one statement; the observation is what the authors show of it (see
    sql/base.py). ``engine``: ``embedded`` answers as MySQL does and needs nothing
    installed, ``mysql`` is a server (its own private one, or that of ``dsn``), ``sqlite`` plain
    SQLite. No statement of an episode is seen by another, nor by the gold, which runs on the data
    as they were at first; in the ``original`` profile it runs on the agent's connection.
    The other settings are InterCodeEnv's; those of images, sandboxes and networks are refused.
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
        _refuse_boxes(settings)
        super().__init__(dataset, **settings)
        self._way: SqlProfile = Original() if self.profile == "original" else Standard()
        self._engine = open_engine(engine, dsn)
        self.limits = limits or SqlLimits()
        self._settings |= {"engine": engine, "dsn": dsn, "limits": limits}

    _session: SqlSession | None = None
    _judging: SqlSession | None = None  # the gold's
    _given_up = False

    def facts(self) -> dict[str, Any]:
        engine = {"kind": self._engine.kind, "version": self._version, **self._engine.facts()}
        return {
            **super().facts(), "env_options": {"engine": engine["kind"]}, "engine": engine,
            "tier": f"{engine['kind']}: {engine['version']}", "arch": platform.machine(),
        }  # fmt: skip

    @cached_property
    def _version(self) -> str:
        return self._engine.version

    @property
    def working_directory(self) -> str:
        return self._session.database if self._session else ""

    def close(self) -> None:
        super().close()
        self._engine.close()

    def abort(self) -> None:
        self._given_up = True
        for session in (self._session, self._judging):
            if session is not None:
                session.abort()

    # ------------------------------------------------------------- the episode
    def _open_episode(self, task: Task) -> None:
        self._session = self._pristine(task)

    def _pristine(self, task: Task) -> SqlSession:
        return self._engine.open(_database(task), self.limits)

    def _for_gold(self, task: Task) -> SqlSession:
        self._judging = self._pristine(task)
        if self._given_up:
            self._judging.abort()
        return self._judging

    def _close_episode(self) -> None:
        self._way.close()
        session, self._session = self._session, None
        self._judging, self._given_up = None, False
        if session is not None:
            session.close()

    def _is_open(self) -> bool:
        return self._session is not None

    @property
    def _here(self) -> SqlSession:
        assert self._session is not None
        return self._session

    def _execute(self, action: str) -> ExecResult:
        return self._way.run(self._here, action, self.timeout)

    def _changes(self) -> list[str]:
        return self._here.changes()

    def _agent_state(self, last: ExecResult | None, answer: str | None) -> State:  # noqa: ARG002
        return self._way.agent_state(last, self.task)

    def _gold_states(self, task: Task) -> list[State]:
        if not task.golds:
            raise GoldError(f"{task.id} has no gold: nothing to score against")
        return self._way.gold_states(task, self._here, lambda: self._for_gold(task))

    def _hashed(self, observation: str) -> dict[str, Any]:
        if not self.hashes:
            return {}
        told = {"observation": observation, "state": self._here.told()}
        return {"hashes": {name: of_observation(text) for name, text in told.items()}}

    # --------------------------------------------------------------- snapshots
    def _hold(self) -> tuple[Any, tuple[str, ...], Callable[[], None]]:
        kept = self._here.snapshot()
        return kept, kept.left_behind, kept.close

    def _resume(self, held: Any, last: bool) -> None:
        self._session = held.take() if last else held.open()
