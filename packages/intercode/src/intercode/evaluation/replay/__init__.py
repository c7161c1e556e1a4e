"""Replay: executes recorded episodes again, compares, verifies, regrades and branches them."""
