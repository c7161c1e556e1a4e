"""Proofs that drawn tasks are sound: golds score 1, and doing nothing does not."""
