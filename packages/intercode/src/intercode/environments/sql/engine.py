"""Opens SQL engines for environments, with the results and the errors of this package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from intercode.core import errors
from intercode.core.types import DatabaseSpec, ExecResult
from intercode_sandbox.platforms.paths import cache_root
from intercode_sql import DatabaseSnapshot, SqlDeterminism, SqlEngine, SqlLimits, SqlSession
from intercode_sql import errors as sql_errors
from intercode_sql import open_engine as open_sql_engine
from intercode_sql.base import SqlDialect
from intercode_sql.host import use_cache
from intercode_sql.types import DatabaseSpec as SqlDatabaseSpec
from intercode_sql.worker.guarded_session import GuardedEngine, GuardedSnapshot

_ERRORS: Mapping[type[sql_errors.SqlError], type[errors.InterCodeError]] = {
    sql_errors.SqlUsageError: errors.UsageError,
    sql_errors.UnknownEngineError: errors.UnknownNameError,
    sql_errors.SqlDataError: errors.DataError,
    sql_errors.SessionStateError: errors.EnvironmentStateError,
    sql_errors.EngineUnavailableError: errors.SandboxUnavailableError,
    sql_errors.ServerLostError: errors.DatabaseLostError,
    sql_errors.ServerKilledError: errors.SandboxKilledError,
}


S = TypeVar("S", bound="EngineSession")


class _TranslatedErrors:
    """Raises the errors of engines as those of this package. A step enters it twice, so it is no
    generator."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, e: BaseException | None, _trace: object) -> None:
        if not isinstance(e, sql_errors.SqlError):
            return
        error = _ERRORS[type(e)](str(e))
        if isinstance(error, errors.DatabaseLostError) and isinstance(
            e, sql_errors.ServerLostError
        ):
            error.machine_failed = e.machine_failed
        raise error from e


translated_errors = _TranslatedErrors()


class EngineSession:
    """A session of an engine; its methods are those of ``SqlSession``."""

    def __init__(self, session: SqlSession, dialect: SqlDialect) -> None:
        self._session, self.dialect = session, dialect

    def like(self, kind: type[S]) -> S:
        """Return this session as one of another class, which runs statements in its own way."""
        return kind(self._session, self.dialect)

    @property
    def database(self) -> str:
        """The name of the default database, as statements use it."""
        return self._session.database

    def run(self, code: str, timeout: float) -> ExecResult:
        """Run one statement, for at most ``timeout`` seconds."""
        with translated_errors:
            r = self._session.run(code, timeout)
        return ExecResult(
            r.output, r.exit_code, r.timed_out, r.omitted_bytes, note=r.note, rows=r.rows
        )

    def snapshot(self) -> EngineSnapshot:
        """Copy the state."""
        with translated_errors:
            return EngineSnapshot(self._session.snapshot(), self.dialect)

    def changes(self) -> list[str]:
        """Return what the session has changed."""
        with translated_errors:
            return self._session.changes()

    def state_text(self) -> str:
        """Return the state as text for a fingerprint."""
        with translated_errors:
            return self._session.state_text()

    def abort(self) -> None:
        """Stop the running statement and end the session."""
        self._session.abort()

    def close(self) -> None:
        """Close the connection and delete the session's copy of the data."""
        with translated_errors:
            self._session.close()


class EngineSnapshot:
    """A copy of a session's state; its methods are those of ``DatabaseSnapshot``."""

    def __init__(self, snapshot: DatabaseSnapshot, dialect: SqlDialect) -> None:
        self._snapshot, self._dialect = snapshot, dialect
        self.omitted_tables = snapshot.omitted_tables

    def open(self) -> EngineSession:
        """Open a new session with this state."""
        with translated_errors:
            return EngineSession(self._snapshot.open(), self._dialect)

    def open_last(self) -> EngineSession:
        """Open a new session with this state and close the snapshot."""
        with translated_errors:
            return EngineSession(self._snapshot.open_last(), self._dialect)

    @property
    def can_pack(self) -> bool:
        """Whether the state can be read in another process."""
        return isinstance(self._snapshot, GuardedSnapshot)

    def pack(self) -> Any:
        """Return the state, which ``Engine.unpack`` reads in any process."""
        assert isinstance(self._snapshot, GuardedSnapshot)
        return self._snapshot.pack()

    def close(self) -> None:
        """Delete the snapshot's data."""
        with translated_errors:
            self._snapshot.close()


class Engine:
    """An engine; its methods are those of ``SqlEngine``."""

    def __init__(self, engine: SqlEngine) -> None:
        self._engine = engine
        self.kind = engine.kind

    @property
    def version(self) -> str:
        """Product and version for a result's metadata."""
        with translated_errors:
            return self._engine.version

    def metadata(self) -> Mapping[str, Any]:
        """Return what else results depend on, as JSON types."""
        with translated_errors:
            return self._engine.metadata()

    def open(self, database: DatabaseSpec, limits: SqlLimits) -> EngineSession:
        """Open a session on pristine data."""
        with translated_errors:
            session = self._engine.open(_own_spec(database), limits)
            return EngineSession(session, self._engine.dialect)

    def unpack(self, database: DatabaseSpec, limits: SqlLimits, packed: Any) -> EngineSnapshot:
        """Return the snapshot that was packed. It contains code: use those of a source that you
        trust."""
        assert isinstance(self._engine, GuardedEngine)
        snapshot = self._engine.unpack(_own_spec(database), limits, packed)
        return EngineSnapshot(snapshot, self._engine.dialect)

    def close(self) -> None:
        """Release the engine's resources."""
        with translated_errors:
            self._engine.close()


def _own_spec(database: DatabaseSpec) -> SqlDatabaseSpec:
    return SqlDatabaseSpec(database.kind, database.path, database.name)


def open_engine(
    kind: str, dsn: str | None = None, determinism: SqlDeterminism | None = None
) -> Engine:
    """Open the engine of that name; see ``intercode_sql.open_engine``."""
    use_cache(cache_root)
    with translated_errors:
        return Engine(open_sql_engine(kind, dsn, determinism))
