"""Bundles: runs that others can verify, with archives, receipts of verification and a
leaderboard."""
