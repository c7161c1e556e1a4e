"""Agents without a model: gold solutions, recorded actions, no action, and a human at a prompt."""
