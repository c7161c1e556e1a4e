"""The environment for rows in SWE-bench's layout."""
