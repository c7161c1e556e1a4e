"""Evaluation: an agent plays a dataset, and every episode is recorded in a run's directory."""
