"""Python as in the authors' code."""
