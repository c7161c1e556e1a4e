"""Isolation tiers: what a machine can enforce, which tier ``auto`` takes, and what would help.

A tier is one row of ``tier_table.TIERS``. A result's metadata names the tier of its sandboxes.
"""
