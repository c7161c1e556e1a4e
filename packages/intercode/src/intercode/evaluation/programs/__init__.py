"""Plays episodes with programs that run in the sandbox and talk to the model through a bridge."""
