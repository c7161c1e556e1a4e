"""Builds SQLite databases from MySQL dumps."""
