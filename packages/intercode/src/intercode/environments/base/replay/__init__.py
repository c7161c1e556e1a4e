"""Replay of recorded episodes: the rules of an environment, and the comparison with the record."""
