"""Runs statements: sessions, connections, caches, and every statement that is not a query."""
