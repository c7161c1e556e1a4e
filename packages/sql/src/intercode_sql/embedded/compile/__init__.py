"""Compiles MySQL queries to SQLite's SQL.

- ``translation``: the entry, from a parsed query to SQL with the columns of its result
- ``queries``: SELECTs, set operations and common table expressions
- ``select``: one SELECT, with GROUP BY, HAVING and ORDER BY
- ``rollup``: GROUP BY … WITH ROLLUP
- ``sources``: FROM, with views, derived tables and joins
- ``model``: the data that they share; its ``Scope`` finds the column of a name
- ``expressions``: expressions with their types, by way of ``operators``, ``calls``,
  ``aggregates``, ``subqueries`` and ``conversions``
- ``strict_values``: checks of values that a statement writes
- ``text_in_errors``: expressions as MySQL's errors quote them
"""
