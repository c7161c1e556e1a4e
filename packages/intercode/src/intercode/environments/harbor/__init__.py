"""The environment for tasks in Harbor's format."""
