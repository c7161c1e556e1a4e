"""Draws the success over the training steps, and on the held-out tasks before and after."""

from __future__ import annotations

from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt


def draw(history: list[dict[str, Any]], path: str) -> str:
    """Draw what a trainer has logged, and return the path of the figure."""
    figure, axes = plt.subplots(figsize=(6, 3.5))
    for key, style, label in (
        ("reward", "-", "training tasks"),
        ("eval_reward", "o", "held-out tasks"),
    ):
        points = [(log["step"], log[key]) for log in history if key in log]
        axes.plot(*zip(*points, strict=True), style, label=label)
    axes.set(xlabel="step", ylabel="success", ylim=(0, 1.02))
    axes.legend(loc="lower right")
    figure.savefig(path, bbox_inches="tight")
    return path
