"""Compares two runs task by task."""
