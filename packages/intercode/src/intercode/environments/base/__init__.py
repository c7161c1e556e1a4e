"""The contract of environments, and what several environments share."""
