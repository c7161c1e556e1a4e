"""Databases, tables, columns, types, collations and values of the embedded engine."""
