"""The engine ``duckdb``, whose statements run in a worker only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import Any

from intercode_sql.base import SqlDeterminism, SqlDialect, SqlLimits
from intercode_sql.errors import EngineUnavailableError, SqlDataError, SqlUsageError
from intercode_sql.literals import DUCKDB_LITERALS
from intercode_sql.types import DatabaseSpec, ExecResult
from intercode_sql.worker.bounded import UnboundedStatementError
from intercode_sql.worker.session import GuardedEngine

_RESERVED = {"main", "memory", "system", "temp"}


def _catalog_name(name: str) -> str:
    """Return the name of a database as DuckDB has it."""
    plain = re.sub(r"\W", "_", name) or "_"
    return f"{plain}_" if plain.lower() in _RESERVED else plain


class _PristineSession:
    """The session of the owner, which runs no statement: it does not load DuckDB."""

    dirty = in_transaction = False

    def __init__(self, name: str) -> None:
        self.database = name
        self.values: Mapping[str, Any] = {}
        self.cacheable: Any = None

    def run(self, code: str, timeout: float) -> ExecResult:  # noqa: ARG002
        """Raise UnboundedStatementError."""
        raise UnboundedStatementError

    def take_change(self) -> bool:
        """Return False."""
        return False

    def saved(self) -> None:
        """Return nothing: the state is pristine."""

    def cache_result(self, key: Any, result: ExecResult) -> None:
        """Do nothing: this engine caches no results."""

    def changes(self) -> list[str]:
        """Return nothing: the state is pristine."""
        return []

    def state_text(self) -> str:
        """Return the text of the pristine state."""
        return f'{{"database": "{self.database}", "tables": {{}}}}'

    def abort(self) -> None:
        """Do nothing: no statement runs here."""

    def close(self) -> None:
        """Do nothing: nothing is open."""


class DuckdbEngine:
    """A ``LocalEngine`` on DuckDB, for dumps of MySQL and SQLite files."""

    kind = "duckdb"
    SETTINGS: frozenset[str] = frozenset()
    PRELOADED = False
    SHARES_WORKERS = False
    OPENER = f"{__name__}:DuckdbEngine"
    dialect = SqlDialect(
        "duckdb", ("mysql-dump", "sqlite"), DUCKDB_LITERALS,
        quote='"', columns_query="DESCRIBE {}",
    )  # fmt: skip
    modules: tuple[str, ...] = ()

    def __init__(self, *, bounded: bool, determinism: SqlDeterminism | None = None) -> None:
        self._bounded, self.determinism = bounded, determinism
        try:
            self.version = f"DuckDB {version_of('duckdb')}"
        except PackageNotFoundError as e:
            raise EngineUnavailableError(
                "the engine duckdb needs DuckDB: pip install 'intercode-sql[duckdb]'"
            ) from e

    @classmethod
    def start(cls) -> GuardedEngine:
        """Open the engine."""
        return GuardedEngine(cls(bounded=True))

    def metadata(self) -> Mapping[str, Any]:
        """Return nothing: settings are those of the version."""
        return {}

    def open(
        self,
        database: DatabaseSpec,
        limits: SqlLimits = SqlLimits(),  # noqa: B008
        saved: bytes | None = None,
    ) -> Any:
        """Open a session, pristine or with a saved content."""
        name = _catalog_name(database.name)
        if self._bounded:
            if database.kind not in self.dialect.reads:
                known = " and ".join(self.dialect.reads)
                raise SqlUsageError(f"the engine reads {known}, not {database.kind!r}")
            if not database.path.is_file():
                raise SqlDataError(f"{database.path}: there is no such file")
            return _PristineSession(name)
        from intercode_sql.duckdb.content import built_file
        from intercode_sql.duckdb.session import DuckdbSession

        return DuckdbSession(built_file(database), name, limits, saved)

    def close(self) -> None:
        """Do nothing: the engine holds no resources."""
