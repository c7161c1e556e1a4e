"""Replay rules of recorded SQL episodes."""

from __future__ import annotations

from typing import ClassVar

from intercode.environments.base.replay.comparison import StepComparison
from intercode.environments.base.replay.rules import ReplayRules
from intercode.environments.sql import recorded_results


class SqlReplayRules(ReplayRules):
    """One environment plays many episodes, and causes of differences are those of results."""

    reusable: ClassVar[bool] = True

    def cause(self, step: StepComparison) -> str:
        """Return the first cause that shows; see ``recorded_results``."""
        return recorded_results.difference_cause(step.action, step.recorded, step.replayed)
