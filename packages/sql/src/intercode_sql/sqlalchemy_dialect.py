"""SQLAlchemy's dialect of MySQL over the DB-API interface of this package.

``create_engine("mysql+intercode:////data/shop.sql")`` opens a dump, and ``"mysql+intercode://"`` an
empty database. ``?engine=NAME``, ``?timeout=SECONDS`` and ``?database=NAME`` are arguments of
``intercode_sql.connect``. All connections of an engine of SQLAlchemy are one, because each would
have a copy of its own.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from sqlalchemy import URL, pool
from sqlalchemy.dialects.mysql.base import MySQLDialect
from sqlalchemy.engine.interfaces import IsolationLevel
from sqlalchemy.exc import ArgumentError

from intercode_sql import dbapi


class IntercodeDialect(MySQLDialect):
    """The dialect ``mysql+intercode``."""

    driver = "intercode"
    default_paramstyle = "pyformat"
    supports_statement_cache = True
    supports_sane_rowcount = True
    supports_sane_multi_rowcount = False
    supports_native_decimal = True

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """Return the module of PEP 249."""
        return dbapi

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:  # noqa: ARG003
        """Return the pool with one connection."""
        return pool.StaticPool

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of ``connect`` for an URL."""
        if url.host or url.username:
            raise ArgumentError(
                f"{url} names a server: write mysql+intercode:///FILE, with ?engine=NAME&dsn=URL "
                "for a server"
            )
        options: dict[str, Any] = dict(url.query)
        if "timeout" in options:
            options["timeout"] = float(options["timeout"])
        return [url.database or None], options

    def set_isolation_level(self, dbapi_connection: Any, level: str) -> None:
        """Set the isolation of transactions; all levels are the same with one connection."""
        dbapi_connection.autocommit = level == "AUTOCOMMIT"

    def get_isolation_level(self, dbapi_connection: Any) -> Any:
        """Return the isolation of transactions."""
        return "AUTOCOMMIT" if dbapi_connection.autocommit else "REPEATABLE READ"

    def get_isolation_level_values(self, dbapi_connection: Any) -> list[IsolationLevel]:  # noqa: ARG002
        """Return the levels that can be set."""
        return ["AUTOCOMMIT", "REPEATABLE READ"]

    def _extract_error_code(self, exception: BaseException) -> int | None:
        number = exception.args[0] if exception.args else None
        return number if isinstance(number, int) else None

    def _detect_charset(self, connection: Any) -> str:  # noqa: ARG002
        return "utf8mb4"
