"""The engine ``mysql``: a MySQL or MariaDB server, either private or given by its address.

It uses the pure Python part of MySQL Connector/Python, because the values and texts of the
published episodes come from that library.
"""

from __future__ import annotations

from intercode_sql.server.engine import MysqlEngine


def open_engine(dsn: str | None = None) -> MysqlEngine:
    """Open the engine ``mysql``. It connects to a server when the first session is opened."""
    return MysqlEngine(dsn)
