"""Reads MySQL dumps: statements, literals, and the files that a dump includes."""
