"""The engine ``embedded``: behaves as MySQL 8, runs on SQLite.

``load`` builds SQLite databases from a MySQL dump, once per dump. ``catalog`` describes MySQL's
types, keys and collations, which SQLite cannot express. ``compile`` translates queries to SQLite's
SQL, ``functions`` implements MySQL's functions, and ``execute`` runs statements and caches results
and translations.
"""

from __future__ import annotations

from intercode_sql.embedded.engine import EmbeddedEngine

__all__ = ["EmbeddedEngine"]
