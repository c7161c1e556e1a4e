"""Compiles MySQL queries to SQLite's SQL."""
