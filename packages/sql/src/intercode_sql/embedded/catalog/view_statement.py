"""Reads CREATE VIEW."""

from __future__ import annotations

import re
from dataclasses import dataclass

from intercode_sql.dialect.token_reader import TokenReader

_CHECK_OPTION = re.compile(r"\s+WITH\s+(?:(?:CASCADED|LOCAL)\s+)?CHECK\s+OPTION\s*\Z", re.I)


@dataclass(frozen=True, slots=True)
class ViewStatement:
    """A CREATE VIEW. ``columns`` is empty if the query names them."""

    database: str
    name: str
    columns: tuple[str, ...]
    query: str
    replacing: bool


def read_create_view(code: str, reserved: bool = True) -> ViewStatement:
    """Read a CREATE VIEW. Raises StatementError 1064 for anything else."""
    reader = TokenReader(code, reserved)
    reader.expect("CREATE")
    replacing = False
    while not reader.accept("VIEW"):
        replacing |= reader.take().upper == "REPLACE"
    reader.accept("IF", "NOT", "EXISTS")
    database, name = reader.names()
    columns = reader.bracketed_names()
    reader.expect("AS")
    if reader.done:
        raise reader.error()
    query = _CHECK_OPTION.sub("", reader.rest())
    return ViewStatement(database, name, columns, query, replacing)
