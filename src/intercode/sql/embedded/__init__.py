"""The engine ``embedded``: SQLite underneath, MySQL 8 to whoever asks.

``dump`` and ``building`` make SQLite databases of a MySQL dump, once; ``catalog`` keeps what SQLite
cannot tell. A statement is parsed (``sessions.sql.parsing``), compiled (``queries``, ``selects``,
``sources``, ``expressions`` and what they use) and run by a ``session``; ``reading`` turns results
into what MySQL Connector/Python would give. What was compiled is kept for the process, and in
``store`` for the next one.
"""

from __future__ import annotations

from intercode.sql.embedded.engine import EmbeddedEngine, open_engine

__all__ = ["EmbeddedEngine", "open_engine"]
