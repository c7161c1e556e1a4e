"""The engine ``duckdb``, whose statements run in a worker only."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of

from intercode_sql.base import SqlDeterminism, SqlDialect, SqlLimits
from intercode_sql.errors import EngineUnavailableError, SqlDataError, SqlUsageError
from intercode_sql.literals import DUCKDB_LITERALS
from intercode_sql.types import DatabaseSpec
from intercode_sql.worker.guarded_session import LocalEngine, LocalSession

_RESERVED = {"main", "memory", "system", "temp"}


def _catalog_name(name: str) -> str:
    """Return the name of a database as DuckDB has it."""
    plain = re.sub(r"\W", "_", name) or "_"
    return f"{plain}_" if plain.lower() in _RESERVED else plain


class DuckdbEngine(LocalEngine):
    """A ``LocalEngine`` on DuckDB, for dumps of MySQL and SQLite files. The owner's process does
    not load DuckDB: all statements run in workers."""

    kind = "duckdb"
    PRELOADED = SHARES_WORKERS = False
    dialect = SqlDialect(
        "duckdb",
        ("mysql-dump", "sqlite"),
        DUCKDB_LITERALS,
        quote='"',
        columns_query="DESCRIBE {}",
    )

    def __init__(self, *, bounded: bool, determinism: SqlDeterminism | None = None) -> None:
        super().__init__(bounded=bounded, determinism=determinism)
        try:
            self._version = version_of("duckdb")
        except PackageNotFoundError as e:
            raise EngineUnavailableError(
                "the engine duckdb needs DuckDB: pip install 'intercode-sql[duckdb]'"
            ) from e

    @property
    def version(self) -> str:
        return f"DuckDB {self._version}"

    def open(
        self,
        database: DatabaseSpec,
        limits: SqlLimits = SqlLimits(),  # noqa: B008
        saved: bytes | None = None,
    ) -> LocalSession:
        """Open a session, pristine or with a saved content."""
        name = _catalog_name(database.name)
        if self.bounded:
            if database.kind not in self.dialect.reads:
                known = " and ".join(self.dialect.reads)
                raise SqlUsageError(f"the engine reads {known}, not {database.kind!r}")
            if not database.path.is_file():
                raise SqlDataError(f"{database.path}: there is no such file")
            return LocalSession(name)
        from intercode_sql.duckdb.content import built_file
        from intercode_sql.duckdb.session import DuckdbSession

        return DuckdbSession(built_file(database), name, limits, saved)
