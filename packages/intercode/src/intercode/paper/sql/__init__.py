"""SQL as in the authors' code."""
