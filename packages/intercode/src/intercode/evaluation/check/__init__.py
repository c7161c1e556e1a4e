"""Checks that the tasks of a dataset are sound, and that prompts do not contain them."""
