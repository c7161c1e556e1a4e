"""Variants of an SQL task: its database with other rows."""
