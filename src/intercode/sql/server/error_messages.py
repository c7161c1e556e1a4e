"""What the server says of what is none of the episode's business, in MySQL's words for it."""

from __future__ import annotations

import re

from intercode.sql.server.connection import ServerStatementError
from intercode.sql.server.database_names import DatabaseNames

_ACCESS_DENIED = (1044, 1142, 1143, 1370, 1227, 1049)
_TABLE = re.compile(r"for (?:table|routine|column) [`'](\w+)[`']\.")
_DATABASE = re.compile(r"to database '(\w+)'")


def agent_message(error: ServerStatementError, names: DatabaseNames) -> str:
    """The message of an error. Another database is unknown here, whether or not there is one."""
    if error.number in _ACCESS_DENIED:
        match = _TABLE.search(error.message) or _DATABASE.search(error.message)
        if match and match[1].lower() not in (names.server_name.lower(), names.public_name.lower()):
            return f"Unknown database '{match[1]}'"
    return error.message
