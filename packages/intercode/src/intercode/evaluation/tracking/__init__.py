"""Tracking: reports a run to other programs, such as Weights & Biases, while it goes on."""

from intercode.evaluation.tracking.base import EpisodeTracker, RunTracker

__all__ = ["EpisodeTracker", "RunTracker"]
