"""The Bash environment."""
