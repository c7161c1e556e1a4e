"""Databases, tables, columns, types, collations and values, as the embedded engine describes them."""
