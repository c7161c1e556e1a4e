"""Statements of a grammar over every type, function and clause, on the embedded engine."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import strategies as st

from hostile.sql.statements_grammar import Statements
from hostile.sql.tables import DUMP
from intercode_sql import open_engine
from intercode_sql.types import DatabaseSpec

_LIMIT = 5.0  # seconds of a statement
_FAULT = "this statement ("
_KNOWN = "SQLite says"


class SqlGrammar:
    """A session of the embedded engine. A statement ends in rows, in MySQL's error, or in what the
    engine cannot do, never in a fault of the engine. ``benchmarks/sql_fuzz.py`` compares the same
    statements with a server."""

    limit, memory = 120.0, 512 << 20

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fuzz-grammar-"))
        path = self.folder / "d.sql"
        path.write_text(DUMP, "utf-8")
        self.engine = open_engine("embedded")
        self.database = DatabaseSpec("mysql-dump", path, "d")

    def cases(self) -> st.SearchStrategy[list[str]]:
        """Return a strategy of the statements of a session."""
        return st.integers(0, 1 << 40).map(lambda seed: Statements(seed).case())

    def attack(self, case: list[str]) -> None:
        """Run the statements in a new session."""
        session = self.engine.open(self.database)
        try:
            for code in case:
                output = session.run(code, _LIMIT).output
                assert _FAULT not in output or _KNOWN in output, output[:300]
            assert session.run("SELECT 40 + 2", _LIMIT).output == "[(42,)]", "the session is broken"
        finally:
            session.close()

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()
        shutil.rmtree(self.folder)
