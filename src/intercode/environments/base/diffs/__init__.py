"""Diffs of changed files, for records."""
