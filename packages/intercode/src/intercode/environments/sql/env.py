"""The SQL environment: answer a question about a database with SQL."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

from intercode.core.errors import DataError, GoldError, UsageError
from intercode.core.types import (
    Brief,
    DatabaseSpec,
    Dataset,
    EnvironmentDescription,
    ExecResult,
    State,
    Task,
    to_jsonable,
)
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.snapshots.snapshot import EnvironmentSnapshot
from intercode.environments.languages import SQL
from intercode.environments.sql.database_changes import compared_result, is_write
from intercode.environments.sql.engine import EngineSession, open_engine
from intercode.environments.sql.profiles import SqlProfile, SqlWorkspace, StandardSqlProfile
from intercode_sandbox.determinism import parse_clock, resolve_determinism
from intercode_sandbox.host.paths import cache_root
from intercode_sandbox.images.cache.in_use import DATABASE_FOLDERS, mark_in_use
from intercode_sql import EngineKind, SqlDeterminism, SqlLimits

if TYPE_CHECKING:
    from intercode_sandbox.determinism import Determinism

_TEST_SECONDS = 10.0
_SANDBOX_SETTINGS = {"image": None, "backend": "auto", "network": "none"}
"""Settings of sandboxes with the only value that SQL accepts: it runs on an engine without a
sandbox."""


def _database(task: Task) -> DatabaseSpec:
    if task.database is None:
        raise DataError(f"{task.id} names no database: its row needs one")
    return task.database


def _keep() -> None:
    """Release nothing: a packed snapshot holds its data."""


def _reject_sandbox_settings(settings: dict[str, Any]) -> None:
    for name, default in _SANDBOX_SETTINGS.items():
        if settings.get(name, default) != default:
            setting = f"{name}={settings[name]!r}"
            raise UsageError(f"SQL runs on an engine and in no sandbox: leave out {setting}")


def _sql_determinism(settings: Determinism | None) -> SqlDeterminism | None:
    if settings is None:
        return None
    seed = settings.seed if settings.random == "seeded" else None
    return SqlDeterminism(*parse_clock(settings.clock), seed)


class SqlEnv(InterCodeEnv):
    """Answer a question with SQL; the reward compares the rows of the last result with the gold's,
    or what both changed in the database if the task asks for a change.

    An action is one statement. The observation is what the authors show of its result (see
    sql/base.py). ``engine``: ``embedded`` answers as MySQL does and needs no installation,
    ``mysql`` is a server (a private one, or the one at ``dsn``), ``sqlite`` is plain SQLite,
    ``duckdb`` is DuckDB with its own dialect.
    ``limits`` bound what a statement may cost.

    No episode sees the statements of another. The gold runs on the initial data. ``deterministic``
    fixes the time and RAND() of statements; only ``embedded`` has it. The
    other settings are InterCodeEnv's; those of images, sandboxes and networks are refused.
    """

    name: ClassVar[str] = "sql"
    description: ClassVar[EnvironmentDescription] = EnvironmentDescription(
        SQL,
        judged="The rows that your latest statement gives are judged, and their order where the "
        "task asks for one. Write one statement, with the columns that are asked for and no "
        "others.",
        tool="run_query",
        argument="statement",
        answer="",
        image="none",
        strata=("hardness", "group"),
        example_action="SELECT 1",
        observations="rows",
        replay_rules="intercode.environments.sql.replay_rules:SqlReplayRules",
    )
    scoring_version: ClassVar[int] = 3  # 3: partial credit measures progress
    standard_profile: ClassVar[type[SqlProfile]] = StandardSqlProfile
    profile_class: type[SqlProfile]

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
        self._engine = open_engine(engine, dsn, _sql_determinism(self.determinism))
        if not isinstance(limits, SqlLimits | None):
            raise UsageError(
                f"the environment 'sql' runs no sandbox: limits is SqlLimits(...), not {limits!r}"
            )
        self.limits = limits or SqlLimits()
        self.settings |= {"engine": engine, "dsn": dsn, "limits": limits}
        self._profile_impl = self.profile_class(self.settings)

    def brief_of(self, task: Task) -> Brief:
        """Return the part of a task that an agent may see, with what its gold makes of it."""
        brief = super().brief_of(task)
        changes = compared_result(task) is None and any(map(is_write, task.golds))
        return replace(
            brief,
            only_changes=brief.only_changes or (changes and self.profile_class.follows_dataset),
        )

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
            "determinism": to_jsonable(self.determinism),
        }

    def _resolve_determinism(
        self, setting: bool | Mapping[str, Any] | Determinism
    ) -> Determinism | None:
        return resolve_determinism(setting)

    @cached_property
    def _engine_version(self) -> str:
        return self._engine.version

    def close(self) -> None:
        super().close()
        self._engine.close()

    # ------------------------------------------------------------- the episode
    def _open_workspace(self, task: Task) -> SqlWorkspace:
        return self._workspace_around(self._open_session(task), task)

    def _open_session(self, task: Task) -> EngineSession:
        cache = cache_root()
        for folder in DATABASE_FOLDERS:
            mark_in_use(cache, folder)
        return self._engine.open(_database(task), self.limits)

    def _workspace_around(self, session: EngineSession, task: Task) -> SqlWorkspace:
        return SqlWorkspace(session, partial(self._open_session, task), self._profile_impl)

    @property
    def _current_workspace(self) -> SqlWorkspace:
        return cast(SqlWorkspace, super()._current_workspace)

    def end_episode(self) -> None:
        self._profile_impl.close()
        super().end_episode()

    def _test_machine(self) -> None:
        session = self._open_session(self.task)
        try:
            session.run("SELECT 1", _TEST_SECONDS)
        finally:
            session.close()

    def _agent_state(self, last: ExecResult | None, answer: str | None) -> State:  # noqa: ARG002
        return self._profile_impl.agent_state(last, self.task, self._current_workspace)

    def _require_gold(self, task: Task) -> None:
        if not task.golds:
            raise GoldError(f"{task.id} has no gold: nothing to score against")

    def _gold_states(self, task: Task) -> list[State]:
        self._require_gold(task)
        return self._profile_impl.gold_states(task, self._current_workspace)

    # --------------------------------------------------------------- snapshots
    def _capture(self) -> tuple[Any, tuple[str, ...], Callable[[], None]]:
        snapshot = self._current_workspace.session.snapshot()
        return snapshot, snapshot.omitted_tables, snapshot.close

    def _pack_episode(self) -> Any:
        with self.snapshot() as snapshot:
            if not snapshot.captured.can_pack:
                return super()._pack_episode()  # it is on a server
            return replace(snapshot, captured=snapshot.captured.pack(), release=_keep)

    def _unpack_episode(self, packed: EnvironmentSnapshot) -> None:
        captured = self._engine.unpack(_database(packed.task), self.limits, packed.captured)
        self.restore(replace(packed, captured=captured), consume=True)

    def _restore_workspace(self, captured: Any, consume: bool) -> SqlWorkspace:
        session = captured.open_last() if consume else captured.open()
        return self._workspace_around(session, self.task)
