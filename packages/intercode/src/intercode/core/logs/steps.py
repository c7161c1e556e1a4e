"""What steps of recorded episodes are that executed nothing."""

from __future__ import annotations

from intercode.core.types import Step

BLOCKED_ACTION = "blocked"
"""The action of a turn without an answer of the endpoint. It has no observation or validity."""
SKIP_ACTION = "skip"
"""The action with which an agent gives up a task."""


def lacks_code(step: Step) -> bool:
    """Return whether the agent answered in this turn, but without code.

    Returns False for blocked turns and for ``skip``.
    """
    return not step.executed and step.action not in (BLOCKED_ACTION, SKIP_ACTION)
