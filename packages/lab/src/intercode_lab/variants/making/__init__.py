"""Variants: other initial states of a task, in which a solution by luck fails."""
