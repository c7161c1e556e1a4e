"""The engine ``duckdb``: DuckDB with its own dialect, in a worker process.

``content`` fills a database file from a dump of MySQL or an SQLite file. ``session`` runs
statements on a copy of it, without access to files, networks, extensions and settings.
"""
