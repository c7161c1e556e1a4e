"""Validity: compares what a grader says with what people say about the same trajectories."""
