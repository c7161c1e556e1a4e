"""Plays solutions in variants of their tasks, and says whether they hold there."""
