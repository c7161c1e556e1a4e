"""Bash as in the authors' code."""
