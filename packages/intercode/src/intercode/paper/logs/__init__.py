"""The logs of the authors, and re-runs of their actions."""
