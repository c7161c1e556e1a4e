"""The engine ``mysql``: a real server, a private one of our own or one whose address is given.

It speaks through MySQL Connector/Python, because the values and texts of the published episodes are
that library's; its pure Python part is used everywhere, so that they are the same everywhere.
"""

from __future__ import annotations

from intercode.sql.server.engine import MysqlEngine


def open_engine(dsn: str | None = None) -> MysqlEngine:
    """See ``sessions.sql.open_engine``. Opens nothing before the first session."""
    return MysqlEngine(dsn)
