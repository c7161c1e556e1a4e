"""Capture the Flag as in the authors' code."""
