"""The Bash part of the starter suite: a file system of our own and tasks on it."""
