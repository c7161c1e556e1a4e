"""Snapshots of episodes: their state, files and storage."""
