"""The SQL environment: answer a question about a database with SQL."""

from __future__ import annotations

import platform
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

from intercode.core.errors import DataError, UsageError
from intercode.core.settings import setting
from intercode.core.types import (
    Brief,
    DatabaseSpec,
    Dataset,
    EnvironmentDescription,
    Payload,
    Task,
    to_jsonable,
)
from intercode.datasets.payloads import SqlPayload
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.episode import Capture, Snapshots
from intercode.environments.base.settings import EnvironmentSettings
from intercode.environments.base.snapshots.snapshot import EnvironmentSnapshot
from intercode.environments.languages import SQL
from intercode.environments.sql.database_changes import is_write
from intercode.environments.sql.engine import EngineSession, open_engine
from intercode.environments.sql.profiles import SqlProfile, SqlWorkspace, StandardSqlProfile
from intercode_sandbox.determinism import parse_clock, resolve_determinism
from intercode_sandbox.images.cache.in_use import DATABASE_FOLDERS, mark_in_use
from intercode_sandbox.platforms.paths import cache_root
from intercode_sql import EngineKind, SqlDeterminism, SqlLimits
from intercode_sql.engines import own_engine_names

if TYPE_CHECKING:
    from intercode_sandbox.determinism import Determinism

_TEST_SECONDS = 10.0
_SANDBOX_SETTINGS = ("image", "backend", "network")
"""Settings of sandboxes. SQL, which runs on an engine, accepts their default only."""


def _database(task: Task) -> DatabaseSpec:
    if task.database is None:
        raise DataError(
            f"{task.id} names no database: its row needs 'database', an object with kind "
            "(mysql-dump or sqlite), path and name"
        )
    return task.database


def _keep() -> None:
    """Release nothing: a packed snapshot holds its data."""


def _sql_determinism(settings: Determinism | None) -> SqlDeterminism | None:
    if settings is None:
        return None
    seed = settings.seed if settings.random == "seeded" else None
    return SqlDeterminism(*parse_clock(settings.clock), seed)


@dataclass(frozen=True, kw_only=True)
class SqlSettings(EnvironmentSettings):
    """The settings of SQL. Those of images, sandboxes and networks are refused."""

    engine: EngineKind = setting(
        "embedded",
        "embedded answers as MySQL does and needs no installation, mysql is a server (a private "
        "one, or the one at dsn), sqlite is plain SQLite, duckdb is DuckDB with its own dialect",
        recorded=True,
        from_record=lambda value: isinstance(value, str) and value in own_engine_names(),
    )
    dsn: str | None = setting(None, "the address of a server of MySQL; none: a private one")
    limits: SqlLimits = setting(None, "SqlLimits(...): bounds of what a statement may cost")

    def __post_init__(self) -> None:
        for name in _SANDBOX_SETTINGS:
            if (value := getattr(self, name)) != getattr(type(self), name):
                given = f"{name}={value!r}"
                raise UsageError(f"SQL runs on an engine and in no sandbox: leave out {given}")
        super().__post_init__()
        if not isinstance(self.limits, SqlLimits | None):
            raise UsageError(
                "the environment 'sql' runs no sandbox: limits is SqlLimits(...), not "
                f"{self.limits!r}"
            )
        self._set(limits=self.limits or SqlLimits())

    def determinism(self) -> Determinism | None:
        return resolve_determinism(self.deterministic)


class DatabaseSnapshots(Snapshots):
    """Saves the data of a session, with its variables."""

    env: SqlEnv

    def capture(self) -> Capture:
        snapshot = cast(SqlWorkspace, self.env.episode.require_workspace()).session.snapshot()
        return snapshot, snapshot.omitted_tables, snapshot.close

    def restore(self, captured: Any, consume: bool = False) -> SqlWorkspace:
        return self.env.workspace_around(captured.open_last() if consume else captured.open())

    def pack(self) -> Any:
        with self.env.snapshot() as snapshot:
            if not snapshot.captured.can_pack:
                return super().pack()  # it is on a server
            return replace(snapshot, captured=snapshot.captured.pack(), release=_keep)

    def unpack(self, packed: EnvironmentSnapshot) -> None:
        database, limits = _database(packed.task), self.env.settings.limits
        captured = self.env.engine.unpack(database, limits, packed.captured)
        self.env.restore(replace(packed, captured=captured), consume=True)


class SqlEnv(InterCodeEnv):
    """Answer a question with SQL; the reward compares the rows of the last result with the gold's,
    or what both changed in the database if the task asks for a change.

    An action is one statement. The observation is what the authors show of its result (see
    sql/base.py). No episode sees the statements of another. The gold runs on the initial data.
    ``deterministic`` fixes the time and RAND() of statements; only the engine ``embedded`` has it.

    >>> from intercode.environments import SqlEnv
    >>> with SqlEnv("starter") as env:
    ...     _ = env.reset(seed=1)
    ...     for action in env.task.solution_actions:
    ...         observation, reward, terminated, truncated, info = env.step(action)
    ...     print(env.score().value)
    1.0
    """

    settings_class: ClassVar[type[SqlSettings]] = SqlSettings
    settings: SqlSettings

    name: ClassVar[str] = "sql"
    payload_type: ClassVar[type[Payload]] = SqlPayload
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
    snapshots_class: ClassVar[type[Snapshots]] = DatabaseSnapshots
    standard_profile: ClassVar[type[SqlProfile]] = StandardSqlProfile
    profile_class: type[SqlProfile]

    def __init__(self, dataset: str | Dataset = "starter", **settings: Any) -> None:
        super().__init__(dataset, **settings)
        determinism = _sql_determinism(self.determinism)
        self.engine = open_engine(self.settings.engine, self.settings.dsn, determinism)

    def brief_of(self, task: Task) -> Brief:
        """Return the part of a task that an agent may see, with what its gold makes of it."""
        brief = super().brief_of(task)
        by_gold = SqlPayload.of(task).compare in ("", SqlPayload.FURTHER)
        changes = by_gold and any(map(is_write, task.golds))
        return replace(
            brief,
            only_changes=brief.only_changes or (changes and self.profile_class.follows_dataset),
        )

    def result_metadata(self) -> dict[str, Any]:
        engine = {
            "kind": self.engine.kind,
            "version": self._engine_version,
            **self.engine.metadata(),
        }
        return {
            **super().result_metadata(),
            "engine": engine,
            "tier": f"{engine['kind']}: {engine['version']}",
            "arch": platform.machine(),
            "determinism": to_jsonable(self.determinism),
        }

    @cached_property
    def _engine_version(self) -> str:
        return self.engine.version

    def close(self) -> None:
        super().close()
        self.engine.close()

    # ------------------------------------------------------------- the episode
    def open_workspace(self) -> SqlWorkspace:
        return self.workspace_around(self._open_session(self.task))

    def _open_session(self, task: Task) -> EngineSession:
        cache = cache_root()
        for folder in DATABASE_FOLDERS:
            mark_in_use(cache, folder)
        return self.engine.open(_database(task), self.settings.limits)

    def workspace_around(self, session: EngineSession) -> SqlWorkspace:
        """Return the workspace of the episode with this session."""
        session = self._profile_impl.open_session(session, self.task, None)
        return SqlWorkspace(session, partial(self._open_session, self.task))

    def check_machine(self) -> None:
        session = self._open_session(self.task)
        try:
            session.run("SELECT 1", _TEST_SECONDS)
        finally:
            session.close()
