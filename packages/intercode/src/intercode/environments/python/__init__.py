"""The Python environment."""
