"""Texts of verifiers in Harbor's form, for environments that say how their tasks are exported."""

from __future__ import annotations

REWARD_SCRIPT = """\
mkdir -p /logs/verifier
if {test}; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""
"""Writes the reward of a command ``test``: 1 if it succeeds."""
