"""Partial credit: how far an agent came from the initial state towards the gold's."""
