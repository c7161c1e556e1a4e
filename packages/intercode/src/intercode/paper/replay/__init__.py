"""Replay rules of the authors' logs."""
