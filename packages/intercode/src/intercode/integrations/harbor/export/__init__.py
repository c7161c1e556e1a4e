"""Exports a dataset's tasks as task directories of Harbor."""
